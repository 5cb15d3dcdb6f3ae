package skew

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"sigs.k8s.io/yaml"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/weir-edge/weir/sim/cloud"
	"github.com/weir-edge/weir/sim/parts"
	"github.com/weir-edge/weir/sim/runtime"
)

// install puts what weir-manager needs into the cluster, as its version prints it, and takes away what only the other
// one has: so do helm upgrade and rollback. Definitions stay, as the chart leaves them.
func (p *pool) install() {
	p.t.Helper()
	v := p.of[runtime.Manager]
	wants, had := p.manifests(v), p.manifests(v.other())
	var gone []string
	for id, text := range had {
		if _, ok := wants[id]; !ok {
			gone = append(gone, text)
		}
	}
	if v == today && len(p.made) == 0 { // as the testbed has made it
		return
	}
	if len(gone) > 0 {
		p.kubectl(strings.Join(gone, "\n---\n"), "delete", "--ignore-not-found", "-f", "-")
	}
	var all []string
	for _, text := range wants {
		all = append(all, text)
	}
	p.kubectl(strings.Join(all, "\n---\n"), "apply", "--server-side", "--force-conflicts", "-f", "-")
}

// manifests are those of a version's weir-manager but definitions, and what would run it, by kind and name.
func (p *pool) manifests(v version) map[string]string {
	p.t.Helper()
	out, err := exec.CommandContext(p.ctx, p.builds[v][parts.ManagerCommand], "--print-manifests").Output()
	check(p.t, err)
	all := map[string]string{}
	for text := range strings.SplitSeq(string(out), "\n---\n") {
		var o struct {
			Kind     string `json:"kind"`
			Metadata struct {
				Name      string `json:"name"`
				Namespace string `json:"namespace"`
			} `json:"metadata"`
		}
		check(p.t, yaml.Unmarshal([]byte(text), &o))
		switch o.Kind {
		case "", "CustomResourceDefinition", "Deployment", "PodDisruptionBudget", "Namespace", "ServiceAccount":
			continue
		}
		all[o.Kind+" "+o.Metadata.Namespace+"/"+o.Metadata.Name] = text
	}
	return all
}

// kubectl runs it as the cloud's administrator.
func (p *pool) kubectl(stdin string, args ...string) {
	p.t.Helper()
	path, err := p.site.Tool(cloud.Kubectl)
	check(p.t, err)
	admin := p.site.Admin()
	config := clientcmdapi.NewConfig()
	config.Clusters["c"] = &clientcmdapi.Cluster{
		Server: admin.Host, CertificateAuthorityData: admin.CAData, CertificateAuthority: admin.CAFile,
	}
	config.AuthInfos["u"] = &clientcmdapi.AuthInfo{
		ClientCertificateData: admin.CertData, ClientKeyData: admin.KeyData, ClientCertificate: admin.CertFile,
		ClientKey: admin.KeyFile, Token: admin.BearerToken,
	}
	config.Contexts["x"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
	config.CurrentContext = "x"
	file := filepath.Join(p.dir, "admin.kubeconfig")
	check(p.t, clientcmd.WriteToFile(*config, file))
	cmd := exec.CommandContext(p.ctx, path,
		append([]string{"--kubeconfig=" + file, "--cache-dir=" + filepath.Join(p.dir, "kube-cache")}, args...)...)
	cmd.Stdin = strings.NewReader(stdin)
	cmd.Env = os.Environ()
	if out, err := cmd.CombinedOutput(); err != nil {
		p.t.Fatalf("kubectl %s: %v: %s", args[0], err, out)
	}
}
