package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/weir-edge/weir/impl/cli"
	"github.com/weir-edge/weir/sim/change"
	"github.com/weir-edge/weir/sim/proc/gobuild"
)

// repository asks git, and builds.
type repository struct{ root string }

func (r repository) git(ctx context.Context, args ...string) (string, error) {
	c := exec.CommandContext(ctx, "git", args...)
	c.Dir = r.root
	out, err := c.Output()
	if err != nil {
		var failed *exec.ExitError
		if errors.As(err, &failed) {
			err = fmt.Errorf("%w: %s", err, strings.TrimSpace(string(failed.Stderr)))
		}
		return "", fmt.Errorf("git %s: %w", args[0], err)
	}
	return strings.TrimRight(string(out), "\n"), nil
}

// base is the revision to compare with: what is asked for, or where the branch left main, or the commit before if there
// is nothing else.
func (r repository) base(ctx context.Context, asked string) (string, error) {
	if asked != "" {
		rev, err := r.git(ctx, "rev-parse", "--verify", "--quiet", "--short=12", asked+"^{commit}")
		if err != nil {
			return "", cli.Usage("--base", asked, "a revision of this repository")
		}
		return rev, nil
	}
	head, err := r.git(ctx, "rev-parse", "--short=12", "HEAD")
	if err != nil {
		return "", err
	}
	dirty, err := r.dirty(ctx)
	if err != nil {
		return "", err
	}
	for _, main := range []string{"origin/main", "main"} {
		at, err := r.git(ctx, "merge-base", main, "HEAD")
		if err != nil {
			continue
		}
		if at, err = r.git(ctx, "rev-parse", "--short=12", at); err == nil && (at != head || dirty) {
			return at, nil
		}
	}
	if dirty {
		return head, nil
	}
	before, err := r.git(ctx, "rev-parse", "--short=12", "--verify", "--quiet", "HEAD~1")
	if err != nil {
		return "",
			cli.Usage("--base", "", "a revision: this clone has none but its head. git fetch --unshallow gets the others")
	}
	return before, nil
}

// dirty reports whether files that git knows, or would take, have changes that are not committed. Reports are no
// source.
func (r repository) dirty(ctx context.Context) (bool, error) {
	out, err := r.git(ctx, "status", "--porcelain", "--", ":(top)", ":(top,exclude)reports")
	return out != "", err
}

func (r repository) side(ctx context.Context, revision string) (change.Side, error) {
	out, err := r.git(ctx, "log", "-1", "--format=%cs %s", revision)
	date, subject, _ := strings.Cut(out, " ")
	return change.Side{Revision: revision, Subject: subject, Date: date}, err
}

func (r repository) head(ctx context.Context) (change.Side, error) {
	revision, err := r.git(ctx, "rev-parse", "--short=12", "HEAD")
	if err != nil {
		return change.Side{}, err
	}
	s, err := r.side(ctx, revision)
	if err != nil {
		return s, err
	}
	s.Changed, err = r.dirty(ctx)
	return s, err
}

// accepted are the losses that commits since base accept, and what is wrong with such lines.
func (r repository) accepted(ctx context.Context, base string) (all []change.Accepted, notes []string, err error) {
	out, err := r.git(ctx, "log", "-z", "--format=%h%n%B", base+"..HEAD")
	if err != nil {
		return nil, nil, err
	}
	for _, c := range strings.Split(out, "\x00") {
		revision, message, _ := strings.Cut(c, "\n")
		a, problem := change.ReadAccepted(revision, message)
		all = append(all, a...)
		if problem != "" {
			notes = append(notes, problem)
		}
	}
	return all, notes, nil
}

// different are the files whose content differs from the base's: not documents and reports, and not Go files that
// differ in comments only.
func (r repository) different(ctx context.Context, base string) (names []string, err error) {
	changed, err := r.git(ctx, "diff", "--name-only", "--no-renames", "-z", base)
	if err != nil {
		return nil, err
	}
	untracked, err := r.git(ctx, "ls-files", "--others", "--exclude-standard", "-z")
	if err != nil {
		return nil, err
	}
	for _, name := range strings.FieldsFunc(changed+"\x00"+untracked, func(c rune) bool { return c == 0 }) {
		if strings.HasSuffix(name, ".md") || strings.HasPrefix(name, "reports/") || strings.HasPrefix(name, ".github/") {
			continue
		}
		same := false
		if strings.HasSuffix(name, ".go") {
			now, errNow := os.ReadFile(filepath.Join(r.root, name))
			c := exec.CommandContext(ctx, "git", "show", base+":"+name)
			c.Dir = r.root
			before, errBefore := c.Output()
			same = errNow == nil && errBefore == nil && change.SameCode(before, now)
		}
		if !same {
			names = append(names, name)
		}
	}
	return names, nil
}

// ofProduct reports whether a file is, or may be, a part of Weir's commands.
func ofProduct(name string) bool {
	return name == "go.mod" || name == "go.sum" ||
		strings.HasPrefix(name, "impl/") && !strings.HasSuffix(name, "_test.go") && !strings.Contains(name, "/testdata/")
}

// checkout puts a revision into a folder of its own.
func (r repository) checkout(ctx context.Context, revision, dir string) error {
	if err := r.remove(ctx, dir); err != nil {
		return err
	}
	_, err := r.git(ctx, "worktree", "add", "--force", "--detach", dir, revision)
	return err
}

// remove takes a folder of checkout away.
func (r repository) remove(ctx context.Context, dir string) error {
	if _, err := os.Stat(dir); err == nil {
		if _, err := r.git(ctx, "worktree", "remove", "--force", dir); err != nil {
			return err
		}
	}
	_, err := r.git(ctx, "worktree", "prune")
	return err
}

// build builds Weir's commands of a tree into a folder, both sides with the same flags.
func (r repository) build(ctx context.Context, tree, dir string, say func(string)) error {
	say("building " + tree)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	c := exec.CommandContext(ctx, "go", "build", "-ldflags", "-s -w", "-o", dir+string(filepath.Separator),
		"./impl/cmd/...")
	c.Dir, c.Env = tree, append(os.Environ(), gobuild.Env()...)
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, strings.TrimSpace(string(out)))
	}
	return nil
}
