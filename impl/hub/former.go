package hub

import "github.com/weir-edge/weir/impl/cli"

// former declares the flags that are gone, since a hub that is upgraded may still be given them.
func former(f *cli.Flags) {
	f.Former("remove it, the hub asks weir-manager for its certificates", "cloud-hub-cert-file", "cloud-hub-key-file",
		"coordinator-client-cert-file", "coordinator-client-key-file", "delegate-client-cert-file",
		"delegate-client-key-file")
	f.Former("remove it, a caller that rested may send the requests of half a minute of --caller-rate at once",
		"caller-burst")
	f.Former("remove it, it is a constant", "coordinator-wait", "max-stale-read", "return-spread", "ring-age",
		"store-every", "store-forget", "store-idle", "store-lazy", "upstream-watch-timeout")
}
