package change

import (
	"encoding/xml"
	"fmt"
	"io"
)

type suites struct {
	XMLName xml.Name `xml:"testsuites"`
	Suites  []suite  `xml:"testsuite"`
}

type suite struct {
	Name     string     `xml:"name,attr"`
	Tests    int        `xml:"tests,attr"`
	Failures int        `xml:"failures,attr"`
	Errors   int        `xml:"errors,attr"`
	Time     string     `xml:"time,attr"`
	Cases    []testCase `xml:"testcase"`
}

type testCase struct {
	Name    string   `xml:"name,attr"`
	Class   string   `xml:"classname,attr"`
	Time    string   `xml:"time,attr"`
	Failure *problem `xml:"failure,omitempty"`
	Error   *problem `xml:"error,omitempty"`
}

type problem struct {
	Message string `xml:"message,attr"`
	Text    string `xml:",chardata"`
}

// WriteJUnit writes runs of scenarios as JUnit's XML, a suite for each side. A run that did not come to its end is an
// error, one that broke a promise a failure.
func WriteJUnit(w io.Writer, runs []Run) error {
	var all suites
	for _, side := range []string{SideHead, SideBase} {
		s := suite{Name: "scenarios of the " + side}
		seconds := 0.0
		for _, r := range runs {
			if r.Side != side {
				continue
			}
			c := testCase{
				Name: fmt.Sprintf("%s, seed %d", r.Scenario, r.Seed), Class: "scenarios." + r.Scenario,
				Time: fmt.Sprintf("%.1f", r.Seconds),
			}
			switch {
			case r.Passed:
			case r.Error != "":
				s.Errors++
				c.Error = &problem{Message: r.Error, Text: r.Repeat}
			default:
				s.Failures++
				c.Failure = &problem{Message: r.why(), Text: r.Repeat}
			}
			seconds += r.Seconds
			s.Cases = append(s.Cases, c)
		}
		s.Tests, s.Time = len(s.Cases), fmt.Sprintf("%.1f", seconds)
		if s.Tests > 0 {
			all.Suites = append(all.Suites, s)
		}
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return fmt.Errorf("write JUnit: %w", err)
	}
	enc := xml.NewEncoder(w)
	enc.Indent("", " ")
	if err := enc.Encode(all); err != nil {
		return fmt.Errorf("write JUnit: %w", err)
	}
	return nil
}
