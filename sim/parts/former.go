package parts

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	"sigs.k8s.io/yaml"
)

// formerFile is the config of a hub of a revision that has no --etc-dir: reports and tests run such beside those of
// this one.
const formerFile = "config-former.yaml"

func (c HubConfig) writeFormer(dir string) error {
	text, err := c.Text()
	if err != nil {
		return err
	}
	var fields map[string]any
	if err := yaml.Unmarshal(text, &fields); err != nil {
		return err
	}
	_, err = write(dir, formerFile, former(fields), nil)
	return err
}

// former has the flags of before for those of today.
func former(fields map[string]any) map[string]any {
	out := maps.Clone(fields)
	if etc, ok := out["etc-dir"].(string); ok {
		delete(out, "etc-dir")
		out["node-authority-file"] = filepath.Join(etc, NodeAuthorityFile)
		out["store-generated-key-file"] = filepath.Join(etc, "store.key")
		for name, flags := range map[string][]string{
			CloudCAFile: {"cloud-ca-file"}, PoolCAFile: {"coordinator-ca-file"},
			ServingFile: {"tls-cert-file", "tls-private-key-file"},
		} {
			path := filepath.Join(etc, name)
			if _, err := os.Lstat(path); err != nil {
				continue
			}
			for _, flag := range flags {
				out[flag] = path
			}
		}
	}
	if pair, ok := out["cloud-client-cert-file"]; ok {
		out["cloud-client-key-file"] = pair
	}
	for port, address := range map[string]string{
		"health-port": "health-bind-address", "pool-port": "pool-bind-address",
	} {
		if host, n, err := net.SplitHostPort(fmt.Sprint(out[port])); err == nil {
			out[address], out[port] = host, json.Number(n)
		}
	}
	var servers, classes []any
	all, _ := out["cloud-server"].([]any)
	for _, s := range all {
		if strings.Contains(fmt.Sprint(s), "=") {
			classes = append(classes, s)
		} else {
			servers = append(servers, s)
		}
	}
	if len(classes) > 0 {
		out["cloud-server"], out["class-server"] = servers, classes
	}
	return out
}

// todays has what is known of programs, by their paths.
var todays sync.Map

// isFormer reports whether weir-hub at a path is of a revision of before. What does not tell its flags is not.
func isFormer(ctx context.Context, path string) bool {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	if known, ok := todays.Load(path); ok {
		return known.(bool) //nolint:forcetypeassert // see below
	}
	help, err := exec.CommandContext(ctx, path, "--help").Output()
	is := err == nil && !strings.Contains(string(help), "--etc-dir ")
	todays.Store(path, is)
	return is
}
