package images

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"

	"github.com/weir-edge/weir/impl/cli"
	"github.com/weir-edge/weir/impl/commands"
	"github.com/weir-edge/weir/impl/images"
)

// told is how many images a kubelet tells of by default (nodeStatusMaxImages): one that tells so many may have more.
const told = 50

// stock is which nodes have which image.
type stock struct {
	Pools []poolStock `json:"pools"`
}

type poolStock struct {
	Name    string       `json:"name"`
	Members int          `json:"members"`
	Images  []imageStock `json:"images"`
	// More are nodes whose kubelets tell of so many images that they may have others.
	More []string `json:"mayHaveMore,omitempty"`
}

// imageStock is one image. Where a tag leads to two, there are two.
type imageStock struct {
	Name    string   `json:"name"` // with a tag, if a kubelet tells of one
	Digest  string   `json:"digest,omitempty"`
	Size    int64    `json:"sizeBytes"` // the largest that a kubelet tells
	Nodes   []string `json:"nodes"`
	Without []string `json:"nodesWithout"` // the other nodes of the pool
}

func list(fs *pflag.FlagSet) commands.Run {
	pool := fs.String("pool", "", "show this pool only")
	form := fs.StringP("output", "o", "table", "table, wide (with nodes), json or yaml")
	flags := commands.BindCluster(fs)
	return func(ctx context.Context, args []string, stdout, _ io.Writer) error {
		if !slices.Contains([]string{"table", "wide", "json", "yaml"}, *form) {
			return cli.Usage("--output", *form, "table, wide, json or yaml")
		}
		only, err := names(args)
		if err != nil {
			return err
		}
		_, v, err := read(ctx, flags, *pool)
		if err != nil {
			return err
		}
		return stockOf(v, *pool, only).Write(stdout, *form)
	}
}

// stockOf is what kubelets tell. Images that are asked for are listed if nobody has them, too.
func stockOf(v *commands.View, only string, asked []images.Name) (s stock) {
	s.Pools = []poolStock{}
	for _, name := range v.PoolNames() {
		if only == "" || only == name {
			s.Pools = append(s.Pools, poolOf(name, v.Members(name), asked))
		}
	}
	return s
}

func poolOf(name string, members []*corev1.Node, asked []images.Name) poolStock {
	p := poolStock{Name: name, Members: len(members), Images: []imageStock{}}
	found := map[[2]string]*imageStock{}
	at := func(name, digest string) *imageStock {
		key := [2]string{name, digest}
		if found[key] == nil {
			found[key] = &imageStock{Name: name, Digest: digest, Nodes: []string{}, Without: []string{}}
		}
		return found[key]
	}
	for _, node := range members {
		if len(node.Status.Images) >= told {
			p.More = append(p.More, node.Name)
		}
		for _, i := range node.Status.Images {
			tags, digest := split(i.Names)
			for _, name := range shown(tags, digest, asked) {
				one := at(name, digest.Digest)
				one.Nodes, one.Size = append(one.Nodes, node.Name), max(one.Size, i.SizeBytes)
			}
		}
	}
	for _, n := range asked {
		name := n.String()
		if !slices.ContainsFunc(slices.Collect(maps.Keys(found)), func(k [2]string) bool { return k[0] == name }) {
			at(name, n.Digest)
		}
	}
	for _, one := range found {
		for _, node := range members {
			if !slices.Contains(one.Nodes, node.Name) {
				one.Without = append(one.Without, node.Name)
			}
		}
		p.Images = append(p.Images, *one)
	}
	slices.SortFunc(p.Images, func(a, b imageStock) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.Digest, b.Digest))
	})
	return p
}

// split are the names of an image on a node: those with tags, and one with its digest. A name that is none is left out.
func split(all []string) (tags []images.Name, digest images.Name) {
	for _, text := range all {
		n, err := images.ParseName(text)
		switch {
		case err != nil:
		case n.Digest == "":
			tags = append(tags, n)
		case digest.Digest == "":
			digest = n
		}
	}
	return tags, digest
}

// shown are the names by which an image is listed: one, or those that are asked for.
func shown(tags []images.Name, digest images.Name, asked []images.Name) (names []string) {
	if all := append(slices.Clone(tags), digest); asked == nil && all[0] != (images.Name{}) {
		return []string{all[0].String()}
	}
	for _, n := range asked {
		if n == digest || slices.Contains(tags, n) {
			names = append(names, n.String())
		}
	}
	return names
}

// Write writes it as table, wide, json or yaml.
func (s stock) Write(w io.Writer, form string) error {
	if written, err := commands.Write(w, form, s); written {
		return err
	}
	if len(s.Pools) == 0 {
		_, err := fmt.Fprintln(w, "there are no pools: weir pool create NAME")
		return err
	}
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	head := "POOL\tIMAGE\tDIGEST\tSIZE\tNODES"
	if form == "wide" {
		head += "\tON\tNOT ON"
	}
	fmt.Fprintln(t, head)
	for _, p := range s.Pools {
		for _, i := range p.Images {
			size := "-"
			if i.Size > 0 {
				size = commands.Size(i.Size)
			}
			line := fmt.Sprintf("%s\t%s\t%s\t%s\t%d/%d", p.Name, i.Name, short(i.Digest), size, len(i.Nodes), p.Members)
			if form == "wide" {
				line += "\t" + cmp.Or(strings.Join(i.Nodes, ","), "-") + "\t" + cmp.Or(strings.Join(i.Without, ","), "-")
			}
			fmt.Fprintln(t, line)
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, p := range s.Pools {
		if len(p.More) > 0 {
			fmt.Fprintf(w, "\npool %s: may have more: the kubelets of %s tell of %d images, the largest\n", p.Name,
				strings.Join(p.More, ", "), told)
		}
	}
	return nil
}

// short is a digest as people tell two apart.
func short(digest string) string {
	_, hex, _ := strings.Cut(digest, ":")
	return cmp.Or(hex[:min(len(hex), 12)], "-")
}
