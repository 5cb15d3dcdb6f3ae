package kind

import (
	"bufio"
	"net"
	"os"
)

// Registries is the folder in which containerd of a machine looks where it gets images of a host from.
const Registries = "/etc/containerd/certs.d"

// RegistriesPatch has containerd look there, as the documentation of kind has it for registries of one's own. It also
// keeps the layers of images, which kind's own configuration throws away: a node that has none has none for its pool.
const RegistriesPatch = "[plugins.\"io.containerd.grpc.v1.cri\".registry]\n  config_path = \"" + Registries + "\"\n" +
	"[plugins.\"io.containerd.grpc.v1.cri\".containerd]\n  discard_unpacked_layers = false\n"

// FirstAddress is the first host and port that stand alone on a line of a log, as registries print where they serve.
// Empty: there is none yet.
func FirstAddress(log string) string {
	f, err := os.Open(log)
	if err != nil {
		return ""
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if _, _, err := net.SplitHostPort(lines.Text()); err == nil {
			return lines.Text()
		}
	}
	return ""
}
