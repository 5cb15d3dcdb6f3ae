package coordinator

import "github.com/weir-edge/weir/impl/cli"

// former declares the flags that are gone, since a coordinator that is upgraded may still be given them.
func former(f *cli.Flags) {
	f.Former("remove it, --certificates-dir has the file", "client-ca-file", "peer-ca-file", "peer-cert-file",
		"peer-key-file", "tls-cert-file", "tls-private-key-file")
	f.Former("remove it, it is a constant", "ring-age")
	f.Former("remove it, a replica listens at its own address in --initial-cluster", "peer-bind-address")
}
