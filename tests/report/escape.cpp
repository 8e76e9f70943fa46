// SPDX-License-Identifier: BSL-1.0
//
// Names are harmless wherever they stand.
#include "catch.hpp"

#include <pipe/report/escape.hpp>

TEST_CASE("XML: markup becomes text") {
  CHECK(pp::detail::xml_escaped("a<b>&\"'c") == "a&lt;b&gt;&amp;&quot;&#39;c");
  CHECK(pp::detail::xml_escaped("") == "");
  CHECK(pp::detail::xml_escaped("µ, 日本, 🙂") == "µ, 日本, 🙂");
}

TEST_CASE("XML: what it forbids is replaced") {
  CHECK(pp::detail::xml_escaped(std::string_view("\0\x01\x7F", 3)) == "���");
  CHECK(pp::detail::xml_escaped("\xEF\xBF\xBE\xEF\xBF\xBF") == "��");
  CHECK(pp::detail::xml_escaped("\xC2\x85") == "�");
}

TEST_CASE("bytes that are no UTF-8 are replaced one by one") {
  CHECK(pp::detail::xml_escaped("a\xFF"
                                "b") == "a�b");
  CHECK(pp::detail::xml_escaped("\x80\x80") == "��");
  CHECK(pp::detail::xml_escaped("\xE2\x82") == "��");       // cut short
  CHECK(pp::detail::xml_escaped("\xC0\xAF") == "��");       // overlong
  CHECK(pp::detail::xml_escaped("\xED\xA0\x80") == "���");  // a surrogate
  CHECK(pp::detail::xml_escaped("\xC3\xA9\xA9") == "é�");   // one continuation too many
  CHECK(pp::detail::xml_escaped("<\x80>") == "&lt;�&gt;");
}

TEST_CASE("JSON: quotes, backslashes and control characters") {
  CHECK(pp::detail::json_string("a\"b\\c\n\x01\x7F") == "\"a\\\"b\\\\c\\u000a\\u0001\\u007f\"");
  CHECK(pp::detail::json_string("\xFF") == "\"�\"");
}

TEST_CASE("JSON: nothing ends a script") {
  CHECK(pp::detail::json_string("</script><!--&") == "\"\\u003c/script\\u003e\\u003c!--\\u0026\"");
  CHECK(pp::detail::json_string("\xE2\x80\xA8\xE2\x80\xA9") == "\"\\u2028\\u2029\"");
}
