package mutant

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// listed is what go list says of a package.
type listed struct {
	ImportPath string
	Dir        string
	Standard   bool
	Module     *module
	Deps       []string

	GoFiles, CgoFiles, SFiles, EmbedFiles []string // those of its tests too, where it is built for these
}

type module struct {
	Path, Version string
	Main          bool
	Replace       *module
}

// here reports whether a module is one of this repository.
func (m *module) here() bool { return m.Main || m.Replace != nil && m.Replace.Version == "" }

// builder is the package by which a test builds programs, or looks for the repository. What such a test is made of is
// all that Git knows.
const builder = "github.com/weir-edge/weir/sim/proc/gobuild"

// inputs returns, by the package of a check, a hash of what its tests are made of: their sources and those of all
// packages of this repository below them, what these embed, the folder testdata, the versions of all else, and Go's. A
// verdict holds as long as they are the same.
func (c *campaign) inputs(ctx context.Context, ms []Mutant) (map[string]string, error) {
	packages := map[string][]string{} // by module
	for _, m := range ms {
		module, err := moduleOf(c.Root, m.Check.Package)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(packages[module], m.Check.Package) {
			packages[module] = append(packages[module], m.Check.Package)
		}
	}
	s := &sources{files: map[string]string{}}
	hashes := map[string]string{}
	for module, of := range packages {
		all, err := list(ctx, c.Root, module, of)
		if err != nil {
			return nil, err
		}
		for _, folder := range of {
			if hashes[folder], err = s.of(ctx, c.Root, folder, all); err != nil {
				return nil, fmt.Errorf("what %s is made of: %w", folder, err)
			}
		}
	}
	return hashes, nil
}

// list asks Go for the tests of some folders of a module, and all that is below them, by import path.
func list(ctx context.Context, root, module string, folders []string) (map[string]*listed, error) {
	args := []string{"list", "-test", "-deps", "-json"}
	for _, folder := range folders {
		rel, err := filepath.Rel(module, filepath.Join(root, folder))
		if err != nil {
			return nil, err
		}
		args = append(args, "./"+rel)
	}
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir, cmd.Env = module, append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list in %s: %w: %s", module, err, strings.TrimSpace(stderr.String()))
	}
	all := map[string]*listed{}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		p := &listed{}
		if err := d.Decode(p); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, fmt.Errorf("go list in %s: %w", module, err)
		}
		all[p.ImportPath] = p
	}
}

// sources remembers the hash of each file that was read, and what Git knows.
type sources struct {
	files map[string]string
	git   string
}

// of hashes what the tests of a folder are made of.
func (s *sources) of(ctx context.Context, root, folder string, all map[string]*listed) (string, error) {
	var test *listed
	for _, p := range all {
		if p.Dir == filepath.Join(root, folder) && strings.HasSuffix(p.ImportPath, ".test") {
			test = p
		}
	}
	if test == nil {
		return "", errors.New("it has no tests")
	}
	files, err := below(filepath.Join(root, folder, "testdata"))
	if err != nil {
		return "", err
	}
	h := sha256.New()
	fmt.Fprintln(h, runtime.Version(), folder)
	for _, path := range test.Deps {
		p := all[path]
		if p == nil || p.Standard {
			continue
		}
		if p.Module == nil || !p.Module.here() {
			fmt.Fprintln(h, path, p.Module)
			continue
		}
		for _, name := range slices.Concat(p.GoFiles, p.CgoFiles, p.SFiles, p.EmbedFiles) {
			files = append(files, filepath.Join(p.Dir, name))
		}
		if path == builder {
			if err := s.known(ctx, root); err != nil {
				return "", err
			}
			fmt.Fprintln(h, s.git)
		}
	}
	slices.Sort(files)
	for _, file := range slices.Compact(files) {
		if s.files[file] == "" {
			data, err := os.ReadFile(file)
			if err != nil {
				return "", err
			}
			s.files[file] = fmt.Sprintf("%x", sha256.Sum256(data))
		}
		rel, err := filepath.Rel(root, file)
		if err != nil {
			return "", err
		}
		fmt.Fprintln(h, rel, s.files[file])
	}
	return hex.EncodeToString(h.Sum(nil)[:16]), nil
}

// known asks Git once for all that it knows: the commit's files, and what was changed since.
func (s *sources) known(ctx context.Context, root string) error {
	for _, args := range [][]string{{"rev-parse", "HEAD^{tree}"}, {"diff", "HEAD"}} {
		if s.git != "" && args[0] == "rev-parse" {
			return nil
		}
		out, err := exec.CommandContext(ctx, "git", append([]string{"-C", root}, args...)...).Output()
		if err != nil {
			return fmt.Errorf("git %s: %w", args[0], err)
		}
		s.git += fmt.Sprintf("%x", sha256.Sum256(out))
	}
	return nil
}

// below are the files in a folder, which need not be there.
func below(dir string) (files []string, err error) {
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			files = append(files, path)
		}
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return files, err
}
