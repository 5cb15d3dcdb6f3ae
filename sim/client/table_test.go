package client_test

import (
	"strings"
	"testing"

	"github.com/weir-edge/weir/sim/client"
)

func TestCompareTables(t *testing.T) {
	const want = `NAMESPACE   NAME         ADDRESSTYPE   PORTS       ENDPOINTS                                   AGE
shop        cart-00-x    IPv4          8080,9090   10.128.0.1,10.128.0.2 + 97 more...          4s
media       stock-01-y   IPv4          <unset>     <unset>                                     59s
`
	for _, test := range []struct{ name, got, differ string }{
		{"the same", want, ""},
		{"older", strings.NewReplacer("4s", "11d", "59s", "60s").Replace(want), ""},
		{"other widths", strings.ReplaceAll(want, "   ", "      "), ""},
		{"missing", strings.Split(want, "media")[0], "media/stock-01-y is missing"},
		{"ghost", want + "shop  b  IPv4  1  2  3s\n", "shop/b is a ghost"},
		{
			"another cell", strings.Replace(want, "97", "98", 1),
			`shop/cart-00-x is shown as "IPv4  8080,9090  10.128.0.1,10.128.0.2 + 98 more..."`,
		},
		{"twice", want + "shop  cart-00-x  IPv4  1  2  3s\n", "twice"},
		{"no table", "No resources found\n", "no row"},
		{"empty", "", "rows differ in 3"},
	} {
		err := client.CompareTables(test.got, want)
		if (err == nil) != (test.differ == "") || err != nil && !strings.Contains(err.Error(), test.differ) {
			t.Errorf("%s: %v, want %q", test.name, err, test.differ)
		}
	}
}
