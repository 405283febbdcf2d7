# Sourced by nginx's configure once objs/Makefile is written.  The engine has
# a Makefile of its own, which knows best what is out of date, and is compiled
# with what --with-cc and --with-cc-opt say.  Ours has built it already, and
# says where: ENGINE_BUILD.

cat << END >> $NGX_MAKEFILE

$ngx_vlm_binary: $ngx_vlm_archive $ngx_addon_dir/http/ngx_http_vlm.map

END

if [ -z "$ENGINE_BUILD" ]; then

    cat << END >> $NGX_MAKEFILE

$ngx_vlm_archive: ngx_vlm_engine

ngx_vlm_engine:
	\$(MAKE) -C $ngx_addon_dir/engine B=$ngx_vlm_build CC="$CC" \\
	    CFLAGS="-O2 -g $NGX_CC_OPT" $ngx_vlm_archive

.PHONY: ngx_vlm_engine

END

fi
