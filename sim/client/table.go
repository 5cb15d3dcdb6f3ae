package client

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// maxDifferences is how many of them CompareTables tells.
const maxDifferences = 5

// columnGap is what kubectl puts between columns; within one there is at most one space.
var columnGap = regexp.MustCompile(` {2,}`)

// CompareTables compares two outputs of "kubectl get --all-namespaces", row by row, without their last column: the age
// depends on when one asks. The error is nil if they show the same.
func CompareTables(got, want string) error {
	g, err := rows(got)
	if err != nil {
		return err
	}
	w, err := rows(want)
	if err != nil {
		return err
	}
	var lines []string
	for k, row := range w {
		switch shown, ok := g[k]; {
		case !ok:
			lines = append(lines, k+" is missing")
		case shown != row:
			lines = append(lines, fmt.Sprintf("%s is shown as %q, should be %q", k, shown, row))
		}
	}
	for k := range g {
		if _, ok := w[k]; !ok {
			lines = append(lines, k+" is a ghost")
		}
	}
	if len(lines) == 0 {
		return nil
	}
	slices.Sort(lines)
	n := len(lines)
	return fmt.Errorf("tables of %d and %d rows differ in %d: %s", len(g), len(w), n,
		strings.Join(lines[:min(n, maxDifferences)], "; "))
}

// rows are the columns between the name and the age, by namespace/name.
func rows(table string) (map[string]string, error) {
	byKey := map[string]string{}
	for line := range strings.Lines(table) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		columns := columnGap.Split(line, -1)
		if len(columns) < 3 {
			return nil, fmt.Errorf("%q is no row of a table with namespace, name and age", line)
		}
		key := columns[0] + "/" + columns[1]
		if _, twice := byKey[key]; twice {
			return nil, fmt.Errorf("%s is twice in the table", key)
		}
		byKey[key] = strings.Join(columns[2:len(columns)-1], "  ")
	}
	return byKey, nil
}
