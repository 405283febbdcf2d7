# nginx's configure sources this file after it has written objs/Makefile.  The
# engine has a Makefile of its own, which tracks its dependencies, and is
# compiled with the values of --with-cc and --with-cc-opt.  If ENGINE_BUILD is
# set, our Makefile has built the engine in that directory already.

cat << END >> $NGX_MAKEFILE

$ngx_vlm_binary: $ngx_vlm_archive $ngx_addon_dir/http/ngx_http_vlm.map

-include \$(wildcard $NGX_OBJS/addon/*/*.d)

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
