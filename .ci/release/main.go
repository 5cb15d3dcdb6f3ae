// Command release builds what people install. `release images` writes one OCI archive for each command of impl/cmd, for
// several architectures, without a container engine. `release all` adds binaries, SBOMs, the manual page, the chart,
// plain manifests and checksums. What it writes follows from the sources, the version and the Go toolchain alone: built
// twice it is the same, byte for byte.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	var usage usageError
	switch {
	case err == nil || errors.Is(err, flag.ErrHelp):
	case errors.As(err, &usage):
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(2)
	default:
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

type usageError string

func (e usageError) Error() string { return string(e) }

// config is what the flags say.
type config struct {
	root       string   // of the repository
	out        string   // folder for all that is made
	version    string   // of Weir, and the tag of images
	repository string   // what the names of images begin with
	arches     []string // of GOARCH
	helm       string   // command that packages the chart
	only       []string // the images that are made; none: all
	byContent  bool     // tags tell contents, too
}

var (
	// tags of images, and so versions, by the specification of OCI's distribution.
	tags         = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$`)
	repositories = regexp.MustCompile(`^[a-z0-9]+([.:/_-][a-z0-9]+)*$`)
	known        = []string{"amd64", "arm64"}
)

func run(ctx context.Context, args []string, stdout io.Writer) error {
	var c config
	flags := flag.NewFlagSet("release images|all", flag.ContinueOnError)
	flags.StringVar(&c.root, "root", "../..", "folder of the repository")
	flags.StringVar(&c.out, "out", "", "folder for what is made; bin/images, or bin/release")
	flags.StringVar(&c.version, "version", "", "version of Weir and tag of its images")
	flags.StringVar(&c.repository, "repository", "ghcr.io/weir-edge", "what the names of images begin with")
	flags.StringVar(&c.helm, "helm", "", "helm command that packages the chart; bin/helm")
	only := flags.String("only", "", "the images that are made, with commas between; all of them")
	flags.BoolVar(&c.byContent, "by-content", false,
		"tags are the version and the beginning of the digest: another image has another tag")
	arches := flags.String("arch", strings.Join(known, ","), "architectures, with commas between")
	verb := ""
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		verb, args = args[0], args[1:]
	}
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return err
		}
		return usageError(err.Error())
	}
	c.arches = strings.Split(*arches, ",")
	var err error
	if c.root, err = filepath.Abs(c.root); err != nil {
		return err
	}
	switch {
	case flags.NArg() > 0:
		return usageError(fmt.Sprintf("argument %q: none is taken after the flags", flags.Arg(0)))
	case !tags.MatchString(c.version):
		return usageError(fmt.Sprintf("-version %q: want what a tag of an image may be, for example v0.1.0", c.version))
	case !repositories.MatchString(c.repository):
		return usageError(fmt.Sprintf("-repository %q: want a name of images in small letters, for example ghcr.io/weir-edge",
			c.repository))
	}
	if *only != "" {
		c.only = strings.Split(*only, ",")
	}
	for _, name := range c.only {
		if verb != "images" || !slices.ContainsFunc(everyImage(), func(b bundle) bool { return b.name == name }) {
			return usageError(fmt.Sprintf("-only %q: want names of images, and the verb images", *only))
		}
	}
	if c.byContent && verb != "images" {
		return usageError("-by-content: want the verb images, since a release has the tag of its version")
	}
	for i, a := range c.arches {
		if !slices.Contains(known, a) || slices.Contains(c.arches[:i], a) {
			return usageError(fmt.Sprintf("-arch %q: want each of %s at most once", *arches, strings.Join(known, ", ")))
		}
	}
	switch verb {
	case "images":
		c.out = orIn(c.out, c.root, "bin/images")
		_, _, err := c.images(ctx, stdout)
		return err
	case "all":
		c.out, c.helm = orIn(c.out, c.root, "bin/release"), orIn(c.helm, c.root, "bin/helm")
		return c.all(ctx, stdout)
	}
	return usageError(fmt.Sprintf("verb %q: want images or all", verb))
}

// orIn is a path, or else one in the repository.
func orIn(path, root, usual string) string {
	if path == "" {
		return filepath.Join(root, usual)
	}
	return path
}
