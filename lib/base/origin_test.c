/* Origins of pages: which are valid, which are the server's own. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "base/origin.h"


static void
an_origin_has_a_scheme_and_a_host_but_no_path(void **state)
{
    (void) state;

    assert_true(vlm_origin_valid("https://robots.example:8443"));
    assert_true(vlm_origin_valid("null://x"));
    assert_false(vlm_origin_valid("https://"));
    assert_false(vlm_origin_valid("https://robots.example/"));
    assert_false(vlm_origin_valid("robots.example"));
    assert_false(vlm_origin_valid("https://*.example"));
    assert_false(vlm_origin_valid("http://localhost:*"));
    assert_false(vlm_origin_valid(""));
}


static void
an_origin_does_not_have_the_port_of_its_scheme(void **state)
{
    (void) state;

    assert_false(vlm_origin_valid("https://robots.example:443"));
    assert_false(vlm_origin_valid("HTTP://robots.example:80"));
    assert_true(vlm_origin_valid("http://robots.example:443"));
    assert_true(vlm_origin_valid("https://robots.example:80"));
    assert_true(vlm_origin_valid("https://robots.example:8443"));
    assert_true(vlm_origin_valid("http://[fd00::80]"));
}


static int
is(const char *text, const char *origin)
{
    return vlm_origin_is(text, strlen(text), origin, strlen(origin));
}


static void
a_page_has_the_origin_of_its_url(void **state)
{
    (void) state;

    assert_true(is("https://a.example", "https://a.example"));
    assert_true(is("HTTPS://A.example/page", "https://a.example"));
    assert_false(is("https://a.example.evil/page", "https://a.example"));
    assert_false(is("https://a.example:8443", "https://a.example"));
    assert_false(is("https://a.exampl", "https://a.example"));
}


static int
own(const char *origin, const char *host)
{
    return vlm_origin_own(origin, strlen(origin), host, strlen(host));
}


static void
the_servers_own_origin_is_the_one_that_was_addressed(void **state)
{
    (void) state;

    assert_true(own("http://a.example", "a.example"));
    assert_true(own("http://a.example:80", "a.example"));
    assert_true(own("https://A.example", "a.example:443"));
    assert_true(own("http://[::1]:5001", "[::1]:5001"));
    assert_true(own("http://a.example:", "a.example"));
    assert_false(own("https://a.example", "a.example:80"));
    assert_false(own("http://a.example:5001", "a.example:5002"));
    assert_false(own("http://a.example:5001", "a.example:500"));
    assert_false(own("http://b.example", "a.example"));
    assert_false(own("http://a.example.evil", "a.example"));
    assert_false(own("http://", ""));
    assert_false(own("ftp://a.example", "a.example"));
    assert_false(own("null", "null"));

    /* A text without anything but digits is a host. */

    assert_true(own("http://5001", "5001"));
}


static void
a_browser_says_that_a_page_of_another_origin_asks(void **state)
{
    (void) state;

    assert_true(vlm_origin_foreign("cross-site", "cors", 1));
    assert_true(vlm_origin_foreign("same-site", "no-cors", 0));
    assert_true(vlm_origin_foreign("cross-site", NULL, 1));
    assert_true(vlm_origin_foreign("cross-site", "navigate", 0));
    assert_false(vlm_origin_foreign("cross-site", "navigate", 1));
    assert_false(vlm_origin_foreign("same-origin", "cors", 0));
    assert_false(vlm_origin_foreign("none", "navigate", 1));
    assert_false(vlm_origin_foreign("", NULL, 0));
}


static int
fixed(const char *host)
{
    return vlm_origin_fixed(host, strlen(host));
}


static void
an_address_and_localhost_are_nobody_elses(void **state)
{
    (void) state;

    assert_true(fixed("127.0.0.1"));
    assert_true(fixed("192.168.1.5"));
    assert_true(fixed("[::1]"));
    assert_true(fixed("[fd00:0000:0000:0000:0000:0000:0000:0005]"));
    assert_true(fixed("[::ffff:10.0.0.1]"));
    assert_true(fixed("localhost"));
    assert_true(fixed("a.localhost"));

    assert_false(fixed(""));
    assert_false(fixed("[]"));
    assert_false(fixed("[127.0.0.1]"));
    assert_false(fixed("[localhost]"));
    assert_false(fixed("::1"));
    assert_false(fixed("127.0.0.1.evil.example"));
    assert_false(fixed("1.2.3"));
    assert_false(fixed("1.2.3.256"));
    assert_false(fixed("5001"));
    assert_false(fixed(".localhost"));
    assert_false(fixed("notlocalhost"));
    assert_false(fixed("localhost.evil.example"));
    assert_false(fixed("evil.example"));
}


static int
named(const char *name, const char *host)
{
    return vlm_origin_named(name, strlen(name), host, strlen(host));
}


static void
a_name_is_one_of_server_name(void **state)
{
    (void) state;

    assert_true(named("robots.example", "robots.example"));
    assert_true(named("*.example", "robots.example"));
    assert_true(named("*.example", "a.robots.example"));
    assert_true(named(".example", "robots.example"));
    assert_true(named(".example", "example"));
    assert_true(named("robots.*", "robots.example.net"));

    assert_false(named("robots.example", "evil.example"));
    assert_false(named("robots.example", "robots.example.net"));
    assert_false(named("*.example", "example"));
    assert_false(named("*.example", ".example"));
    assert_false(named("*.example", "evilexample"));
    assert_false(named(".example", "evilexample"));
    assert_false(named("robots.*", "robots."));
    assert_false(named("robots.*", "robotsevil"));
    assert_false(named("_", "evil.example"));
    assert_false(named("", "evil.example"));
    assert_false(named("", ""));
    assert_false(named("*", "evil.example"));
    assert_false(named(".", "evil.example"));
}


static int
listed(const char *origin, const char *host)
{
    return vlm_origin_listed(origin, strlen(origin), host, strlen(host));
}


static void
a_host_is_that_of_an_origin(void **state)
{
    (void) state;

    assert_true(listed("https://robots.example:8443", "robots.example"));
    assert_true(listed("http://Robots.example", "robots.example"));
    assert_true(listed("http://[fd00::5]:3000", "[fd00::5]"));
    assert_false(listed("http://robots.example", "example"));
    assert_false(listed("http://robots.example:80", "robots.example:80"));
    assert_false(listed("http://", ""));
    assert_false(listed("robots.example", "robots.example"));
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(an_origin_has_a_scheme_and_a_host_but_no_path),
        cmocka_unit_test(an_origin_does_not_have_the_port_of_its_scheme),
        cmocka_unit_test(a_page_has_the_origin_of_its_url),
        cmocka_unit_test(the_servers_own_origin_is_the_one_that_was_addressed),
        cmocka_unit_test(a_browser_says_that_a_page_of_another_origin_asks),
        cmocka_unit_test(an_address_and_localhost_are_nobody_elses),
        cmocka_unit_test(a_name_is_one_of_server_name),
        cmocka_unit_test(a_host_is_that_of_an_origin)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
