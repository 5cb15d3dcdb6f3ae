package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/weir-edge/weir/impl/cli"
	"github.com/weir-edge/weir/impl/commands"
	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/directory"
	"github.com/weir-edge/weir/impl/manager/manifests"
	"github.com/weir-edge/weir/impl/manager/revocation"
	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/sim/audit"
)

// seldom are grants that runs may leave unused, and why.
var seldom = map[string]string{
	"ClusterRole weir:hub: get /.well-known/openid-configuration": "the keys of tokens are asked for with a pod's " +
		"token, where there is one and the cluster allows it",
	"ClusterRole weir:hub: get /openid/v1/jwks":          "likewise",
	"ClusterRole weir:hub: post " + contract.ReversePath: "it is for weir-gate, which asks kube-apiserver about it",
	"ClusterRole weir:hub-topology: list nodes":          "only hubs with --filters=servicetopology do",
}

// later are requests that may be refused, and why.
var later = map[*regexp.Regexp]string{
	regexp.MustCompile(`^` + contract.HubUserPrefix + `\S+: watch configmaps ` + contract.KeyNamespace + `/(` +
		contract.DenylistPrefix + `|pool-)`): "weir-manager grants it once it knows the Node, where one runs",
}

// joins is the role of nodes that join by a token.
const joins = "ClusterRole weir:joins"

// runAudit reads the audit logs of runs, and fails if a part of Weir was refused something, or hubs, or nodes that
// join, have a grant that none of them used. What weir-manager may do is compared with what it did where a test has it
// do everything: package sim/managertest.
func runAudit(flags *pflag.FlagSet) commands.Run {
	joining := flags.Bool("joins", false, "nodes join by tokens in the runs: what they may do was used, too")
	return func(_ context.Context, args []string, stdout, _ io.Writer) error {
		if len(args) == 0 {
			return cli.Usage("DIR", "", "folders of reports, as reports/out/pool-cache")
		}
		var use audit.Use
		logs := 0
		for _, dir := range args {
			n, err := readLogs(&use, dir)
			if errors.Is(err, fs.ErrNotExist) {
				return cli.Usage("DIR", dir, "a folder of reports, as reports/out/pool-cache: "+err.Error())
			} else if err != nil {
				return err
			}
			logs += n
		}
		if logs == 0 {
			return cli.Usage("DIR", strings.Join(args, " "), "folders of reports with a logs/"+audit.File)
		}
		grants, err := audit.Grants(manifests.Hubs())
		if err != nil {
			return err
		}
		if *joining {
			all, err := audit.Grants(manifests.RBAC())
			if err != nil {
				return err
			}
			grants = append(grants, slices.DeleteFunc(all, func(g audit.Grant) bool { return g.Role != joins })...)
		}
		unused := use.Unused(grants)
		fmt.Fprintf(stdout, "%d requests of Weir in %d logs: %d of %d grants were used, %d requests were refused\n",
			use.Events, logs, len(grants)-len(unused), len(grants), len(use.Refused))
		differ := 0
		for _, g := range unused {
			why := seldom[g.String()]
			if why == "" && byDefault(g.String()) {
				why = "a pool may share it, and no client read it"
			}
			if why != "" {
				fmt.Fprintf(stdout, "not used:   %s (%s)\n", g, why)
				continue
			}
			differ++
			fmt.Fprintln(stdout, "never used:", g)
		}
		for _, r := range use.Refused {
			if why := excuse(r); why != "" {
				fmt.Fprintf(stdout, "refused:    %s (%s)\n", r, why)
				continue
			}
			differ++
			fmt.Fprintln(stdout, "refused:   ", r)
		}
		if differ > 0 {
			return errors.New("grants and use differ: mend the manifests, or what hubs ask")
		}
		return nil
	}
}

// byDefault reports whether a grant is there for a resource that pools share by default, if a client reads it. All runs
// have clients that read Endpoints and EndpointSlices.
func byDefault(grant string) bool {
	return slices.ContainsFunc(directory.DefaultScope(), func(name string) bool {
		r, err := relay.ParseResource(name)
		if err != nil || strings.HasPrefix(r.Resource, "endpoint") {
			return false
		}
		of := r.GroupResource().String()
		return grant == "ClusterRole "+revocation.HubRole+": list "+of ||
			grant == "ClusterRole "+revocation.HubRole+": watch "+of
	})
}

func excuse(refused string) string {
	for what, why := range later {
		if what.MatchString(refused) {
			return why
		}
	}
	return ""
}

func readLogs(use *audit.Use, dir string) (logs int, err error) {
	err = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.Name() != audit.File {
			return err
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		logs++
		if err := use.Read(f); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		return nil
	})
	return logs, err
}
