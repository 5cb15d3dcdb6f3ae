package operator

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/weir-edge/weir/impl/commands"
	"github.com/weir-edge/weir/impl/nodepool"
)

// suggestForms are those that Write knows.
var suggestForms = []string{"table", "json", "yaml"}

// isForm reports whether Write knows a form.
func isForm(form string) bool { return slices.Contains(suggestForms, form) }

// Write writes it as table, json or yaml.
func (s *suggestion) Write(w io.Writer, form string) error {
	if written, err := commands.Write(w, form, s); written {
		return err
	}
	if s.Told == 0 && len(s.Passed) == 0 {
		_, err := fmt.Fprintf(w, "pool %s: no hub has told yet what its clients read; each does with a heartbeat of its "+
			"kubelet\n", s.Pool)
		return err
	}
	fmt.Fprintf(w, "pool %s: %d of %d hubs have told what their clients read of the whole cluster in the last 24 "+
		"hours\n\n", s.Pool, s.Told, s.Hubs)
	if err := s.table(w); err != nil {
		return err
	}
	s.share(w)
	s.unread(w)
	return nil
}

func (s *suggestion) table(w io.Writer) error {
	if len(s.Passed) == 0 {
		_, err := fmt.Fprintln(w, "Nothing that a pool could share goes to the cloud from each node.")
		return err
	}
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	fmt.Fprintln(t, "NOT SHARED\tNODES\tBYTES A DAY\tSAVED IF SHARED\tWHY NOT")
	for _, r := range s.Passed {
		saves := "-"
		if r.Share != nil {
			saves = commands.Size(r.Saves)
		}
		fmt.Fprintf(t, "%s\t%d\t%s\t%s\t%s\n", r.Resource, r.Nodes, commands.Size(r.Bytes), saves, cmp.Or(r.Why, "-"))
	}
	if s.Others > 0 {
		fmt.Fprintf(t, "all others\t-\t%s\t-\t-\n", commands.Size(s.Others))
	}
	return t.Flush()
}

// share prints the lines that share what is worth it.
func (s *suggestion) share(w io.Writer) {
	var lines []nodepool.Resource
	for _, r := range s.Passed {
		if r.Share != nil {
			lines = append(lines, *r.Share)
		}
	}
	if len(lines) == 0 {
		return
	}
	fmt.Fprintf(w, "\nTo share them, add to spec.poolScopeMetadata of NodePool %s:\n", s.Pool)
	entries(w, lines)
	if len(s.Default) > 0 {
		fmt.Fprintln(w, "It is empty now, so the pool shares what the hubs' --pool-scope-resources names. Add these too, "+
			"the default:")
		entries(w, s.Default)
	}
	fmt.Fprintln(w, "Each node of the pool then has all objects of these resources: share nothing that holds a secret.")
}

// unread prints what is shared for nobody.
func (s *suggestion) unread(w io.Writer) {
	switch {
	case !s.UnreadKnown:
		fmt.Fprintln(w, "\nWhether all that the pool shares is read is not known: not every hub has told.")
		return
	case len(s.Unread) == 0:
		return
	}
	fmt.Fprintln(w, "\nShared, and no client in the pool has read it for a day:")
	entries(w, s.Unread)
	fmt.Fprintf(w, "It costs nothing until one does. To share it no more, remove it from spec.poolScopeMetadata of "+
		"NodePool %s.\n", s.Pool)
}

// entries prints resources as poolScopeMetadata has them.
func entries(w io.Writer, all []nodepool.Resource) {
	for _, r := range all {
		fmt.Fprintf(w, "  - {group: %s, version: %s, resource: %s}\n", cmp.Or(r.Group, `""`), r.Version, r.Resource)
	}
}

// Line is a sentence about it.
func (b *suggestBrief) Line(pool string) string {
	var parts []string
	if b.Share > 0 {
		parts = append(parts, fmt.Sprintf("sharing %s would save %s a day",
			resources(b.Share, "more "), commands.Size(b.Saves)))
	}
	if b.Unread > 0 {
		parts = append(parts, fmt.Sprintf("%s shared and not read by anybody", resources(b.Unread, "")+are(b.Unread)))
	}
	return fmt.Sprintf("pool %s: %s: weir pool suggest %[1]s", pool, strings.Join(parts, "; "))
}

func resources(n int, which string) string {
	if n == 1 {
		return "1 " + which + "resource"
	}
	return fmt.Sprintf("%d %sresources", n, which)
}

func are(n int) string {
	if n == 1 {
		return " is"
	}
	return " are"
}
