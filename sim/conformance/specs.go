package conformance

import (
	_ "embed"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

//go:embed specs.txt
var specList string

// Specs are the full names of those that run, in the order of specs.txt.
func Specs() []string {
	var all []string
	for line := range strings.Lines(specList) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			all = append(all, line)
		}
	}
	return all
}

// Again reports whether a spec runs many times: those about watches, and those that ever failed through a hub.
func Again(spec string) bool {
	return slices.ContainsFunc([]string{
		"Watchers should", "negotiate watch and report errors", "should support creating EndpointSlice API operations",
		"ConfigMap should run through a ConfigMap lifecycle", "CustomResourceDefinition Watch",
	}, func(s string) bool { return strings.Contains(spec, s) })
}

// Deviations are specs that pass straight and not through a hub, each with the reason, which docs/conformance.md has as
// well.
var Deviations = map[string]string{}

// Select returns the specs that match an expression.
func Select(all []string, expression string) ([]string, error) {
	re, err := regexp.Compile(expression)
	if err != nil {
		return nil, fmt.Errorf("a regular expression is wanted: %w", err)
	}
	chosen := slices.DeleteFunc(slices.Clone(all), func(s string) bool { return !re.MatchString(s) })
	if len(chosen) == 0 {
		return nil, fmt.Errorf("an expression that one of the %d specs matches, see --list", len(all))
	}
	return chosen, nil
}

// focus is the regular expression that ginkgo takes for exactly these specs.
func focus(specs []string) string {
	quoted := make([]string, len(specs))
	for i, s := range specs {
		quoted[i] = regexp.QuoteMeta(s)
	}
	return "(" + strings.Join(quoted, "|") + ")$"
}
