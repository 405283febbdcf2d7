# Sourced by nginx's configure once objs/Makefile is written.  The engine has
# a Makefile of its own, which knows best what is out of date.  SAN, set when
# configure runs, reaches the engine as well.

cat << END >> $NGX_MAKEFILE

$NGX_OBJS/ngx_http_vlm_module.so: $ngx_vlm_archive $ngx_addon_dir/http/ngx_http_vlm.map

$ngx_vlm_archive: ngx_vlm_engine

ngx_vlm_engine:
	\$(MAKE) -C $ngx_addon_dir/engine B=$ngx_vlm_build SAN="${SAN:-}" $ngx_vlm_archive

.PHONY: ngx_vlm_engine

END
