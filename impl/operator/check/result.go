package check

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/weir-edge/weir/impl/commands"
)

// Hints is where the documentation of checks is; an anchor follows.
const Hints = "https://github.com/weir-edge/weir/blob/main/docs/operations.md#"

// Values of Result.Result.
const (
	OK      = "ok"
	Warning = "warning" // it works, and somebody should look
	Error   = "error"
	Skipped = "skipped" // what it needs could not be read
)

// Result is what one check says of one thing.
type Result struct {
	ID          string `json:"id"` // the anchor, too
	Description string `json:"description"`
	Pool        string `json:"pool,omitempty"`
	Node        string `json:"node,omitempty"`
	Result      string `json:"result"`
	Cause       string `json:"cause,omitempty"` // if it is not well
	Hint        string `json:"hint,omitempty"`  // likewise
}

// Category is a few that belong together.
type Category struct {
	Name   string   `json:"name"`
	Checks []Result `json:"checks"`
}

// Report is all that weir check says.
type Report struct {
	Success    bool       `json:"success"` // there is no error, and nothing that could not be looked at
	Categories []Category `json:"categories"`
}

// add takes a result.
func (r *Report) add(category string, one Result) {
	if n := len(r.Categories); n == 0 || r.Categories[n-1].Name != category {
		r.Categories = append(r.Categories, Category{Name: category})
	}
	last := &r.Categories[len(r.Categories)-1]
	last.Checks = append(last.Checks, one)
	r.Success = r.Success && one.Result != Error && one.Result != Skipped
}

var marks = map[string]string{OK: "√", Warning: "‼", Error: "×", Skipped: "-"}

// Write writes it as table, short or json.
func (r Report) Write(w io.Writer, form string) error {
	if written, err := commands.Write(w, form, r); written {
		return err
	}
	var b strings.Builder
	for _, c := range r.Categories {
		head := ""
		if form == "table" {
			head = c.Name + "\n" + strings.Repeat("-", len(c.Name)) + "\n"
		}
		for _, one := range c.Checks {
			if form == "short" && one.Result == OK {
				continue
			}
			b.WriteString(head + marks[one.Result] + " " + one.line() + "\n")
			if head = ""; one.Result == OK {
				continue
			}
			fmt.Fprintf(&b, "    %s\n", one.Cause)
			if one.Hint != "" {
				fmt.Fprintf(&b, "    see %s\n", one.Hint)
			}
		}
		if form == "table" {
			b.WriteString("\n")
		}
	}
	said := "√"
	if !r.Success {
		said = "×"
	}
	if form == "table" || !r.Success {
		fmt.Fprintf(&b, "Status check results are %s\n", said)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (r Result) line() string {
	switch {
	case r.Node != "":
		return "node " + r.Node + ": " + r.Description
	case r.Pool != "":
		return "pool " + r.Pool + ": " + r.Description
	}
	return r.Description
}

func rounded(d time.Duration) string { return d.Round(time.Second).String() }
