package install_test

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"regexp"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var update = flag.Bool("update", false, "write testdata")

// changes are what no two runs have in common: times, ages, bytes, addresses, and who was elected.
var changes = []struct {
	from *regexp.Regexp
	to   string
}{
	{regexp.MustCompile(` {2,}`), "  "}, // columns are as wide as what is in them
	{regexp.MustCompile(`\b\d+(m\d+)?s ago\b`), "N ago"},
	{regexp.MustCompile(`-?\b\d+(\.\d+)? (B|kB|MB)\b`), "N B"},
	{regexp.MustCompile(`\b\d{4}-\d\d-\d\d\b`), "DATE"},
	{regexp.MustCompile(`https://[\d.]+:`), "https://ADDRESS:"},
	{regexp.MustCompile(`(?m)^(\w+  (?:LeaderHubs|Coordinator)(?:  \d+){4})  \S+  \S+  `), "$1  LEADER  AGE  "},
	{regexp.MustCompile(`  (Leader|Follower|Pending|Orphan|-)  (\S+)  N B  `), "  ROLE  AGE  N B  "},
}

// prints holds that a command prints what is in testdata.
func prints(ctx context.Context, line, file string) {
	GinkgoHelper()
	got := typed(ctx, line)
	for _, c := range changes {
		got = c.from.ReplaceAllString(got, c.to)
	}
	path := filepath.Join("testdata", file)
	if *update {
		Expect(os.WriteFile(path, []byte(got), 0o644)).To(Succeed())
	}
	want, err := os.ReadFile(path)
	Expect(err).NotTo(HaveOccurred())
	Expect(got).To(Equal(string(want)), "%s: what %s has", line, path)
}
