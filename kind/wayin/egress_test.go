package wayin_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// pki is what kube-apiserver of kubeadm sees of the disk of its machine, and egressFolder what is put there for it.
const (
	pki          = "/etc/kubernetes/pki"
	egressFolder = pki + "/weir-gate"
	egressFile   = egressFolder + "/egress.yaml"
	egressFlag   = "--egress-selector-config-file=" + egressFile
	kubeletCert  = pki + "/apiserver-kubelet-client.crt"
	kubeletKey   = pki + "/apiserver-kubelet-client.key"
	kubeletUser  = "kube-apiserver-kubelet-client" // whose certificate it is

	adminFile = "/root/admin.pem" // the certificate of kubeadm's administrator, and its key
)

// egress leads what kube-apiserver connects to in the cluster to the gate. It shows the certificate that it shows to
// kubelets.
const egress = `apiVersion: apiserver.k8s.io/v1beta1
kind: EgressSelectorConfiguration
egressSelections:
- name: cluster
  connection:
    proxyProtocol: HTTPConnect
    transport:
      tcp:
        url: https://%s:%d
        tlsConfig:
          caBundle: ` + egressFolder + `/ca.crt
          clientCert: ` + kubeletCert + `
          clientKey: ` + kubeletKey + `
`

// editManifest gives kube-apiserver its flag. The kubelet reads each file of the folder: the new one comes there whole.
const editManifest = `set -e
cd /etc/kubernetes
sed 's#^    - kube-apiserver$#&\n    - %[1]s#' manifests/kube-apiserver.yaml >kube-apiserver.new
grep -q -- '%[1]s' kube-apiserver.new
mv kube-apiserver.new manifests/kube-apiserver.yaml`

// selectEgress has kube-apiserver reach the cluster through the gate, and waits for the new one.
func selectEgress(ctx context.Context) {
	GinkgoHelper()
	control := on.run.Control()
	authority := typed(ctx, `kubectl -n kube-system get secret weir-gate-tls -o jsonpath='{.data.ca\.crt}' | base64 -d`)
	_, err := control.Exec(ctx, "mkdir", "-p", egressFolder)
	Expect(err).NotTo(HaveOccurred())
	Expect(control.Write(ctx, egressFolder+"/ca.crt", strings.NewReader(authority))).To(Succeed())
	Expect(control.Write(ctx, egressFile, strings.NewReader(fmt.Sprintf(egress, on.cloud, gatePort)))).To(Succeed())
	_, err = control.Exec(ctx, "sh", "-c", fmt.Sprintf(editManifest, egressFlag))
	Expect(err).NotTo(HaveOccurred())
	Eventually(ctx, func(g Gomega) {
		_, err := control.Exec(ctx, "pgrep", "-f", "--", "kube-apiserver.*"+egressFlag)
		g.Expect(err).NotTo(HaveOccurred(), "no kube-apiserver has the flag")
		out, err := command(ctx, "kubectl get --raw /readyz")
		g.Expect(err).NotTo(HaveOccurred(), out)
	}, long, poll).Should(Succeed())
}

// giveAdmin puts the certificate of kubeadm's administrator where curl reads it.
func giveAdmin(ctx context.Context) {
	GinkgoHelper()
	_, err := on.run.Control().Exec(ctx, "sh", "-ec", "for what in certificate key; do kubectl config view --raw "+
		"--kubeconfig /etc/kubernetes/admin.conf -o jsonpath={.users[0].user.client-$what-data} | base64 -d; done >"+
		adminFile)
	Expect(err).NotTo(HaveOccurred())
}

// ways are how many connections of leaders each replica of the gate has, by its own metrics.
func ways(ctx context.Context) (all map[string]int, err error) {
	out, err := command(ctx, "kubectl -n kube-system get pods -l app.kubernetes.io/name=weir-gate -o "+
		`jsonpath='{range .items[*]}{.metadata.name} {.status.podIP}{"\n"}{end}'`)
	if err != nil {
		return nil, fmt.Errorf("%w: %s", err, out)
	}
	all = map[string]int{}
	for name, address := range pairs(out) {
		text, err := on.run.Control().Exec(ctx, "curl", "-skf", "-m", "3", "--cert", adminFile,
			"https://"+address+":10273/metrics")
		if err != nil {
			return nil, err
		}
		for line := range strings.Lines(text) {
			if value, ok := strings.CutPrefix(line, `weir_gate_ways{pool="`+pool+`"} `); ok {
				if all[name], err = strconv.Atoi(strings.TrimSpace(value)); err != nil {
					return nil, err
				}
			}
		}
	}
	return all, nil
}

// connected waits until each replica of the gate has a connection of a leader.
func connected(ctx context.Context) {
	GinkgoHelper()
	Eventually(ctx, func(g Gomega) {
		all, err := ways(ctx)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(all).To(And(HaveLen(gates), HaveEach(BeNumerically(">=", 1))))
	}, long, poll).Should(Succeed())
}
