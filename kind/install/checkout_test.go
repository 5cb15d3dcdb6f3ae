package install_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/weir-edge/weir/impl/contract"
)

// fromACheckout is a spec of what is loaded into the cluster, and not in the registry. It comes last: machines have
// images then that nobody pulled.
func fromACheckout(served *calls) {
	It("takes what a checkout loads", func(ctx SpecContext) {
		here := strings.NewReplacer("--cluster kind", "--cluster "+on.run.ID, "kind-kind", "kind-"+on.run.ID)
		commands := commandsOf(filepath.Join(on.root, "kind", "README.md"), "Weir in a cluster of yours")
		Expect(commands).To(HaveLen(2))
		inCheckout := func(line string) string {
			GinkgoHelper()
			return typed(ctx, "cd '"+on.root+"' && "+here.Replace(line))
		}
		Expect(inCheckout(commands[0])).To(HaveSuffix("\n"+here.Replace(commands[1])+"\n"), "it prints the next command")
		inCheckout(commands[1])

		typed(ctx, "kubectl weir pool create pier --coordinator")
		typed(ctx, fmt.Sprintf("kubectl label --overwrite node %s %s=pier", node(5), contract.NodePoolLabel))
		var loaded string // the tag of an image, the version of its programs with the beginning of its digest behind it
		Eventually(ctx, func(g Gomega) {
			image, err := command(ctx, "kubectl -n kube-system get jobs -l "+contract.NameLabel+"="+contract.InstallerName+
				","+contract.NodePoolLabel+"=pier -o jsonpath='{.items[*].spec.template.spec.containers[0].image}'")
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(image).To(HavePrefix(released + "weir-installer:"))
			loaded = image[strings.LastIndex(image, ":")+1 : strings.LastIndex(image, "-")]
		}, long, poll).Should(Succeed())
		Eventually(ctx, func() (string, error) {
			return onNode(ctx, 5, `"$(readlink -f /proc/$(systemctl show -p MainPID --value weir-hub)/exe)" --version`)
		}, 2*long, poll).Should(ContainSubstring(loaded))
		typed(ctx, "kubectl weir check --wait 5m")
		for image, exec := range map[string]func(context.Context, ...string) (string, error){
			"weir-manager": on.run.Control().Exec, "weir-installer": machine(5).Exec, "weir-coordinator": machine(5).Exec,
		} {
			Expect(imagesOn(ctx, exec)).To(ContainElement(HavePrefix(released + image + ":" + loaded + "-")))
		}
		served.none()
	}, SpecTimeout(4*long))
}
