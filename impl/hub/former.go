package hub

import "github.com/weir-edge/weir/impl/cli"

// former declares the flags that are gone, since a hub that is upgraded may still be given them.
func former(f *cli.Flags) {
	f.Former("remove it, the hub asks weir-manager for its certificates", "cloud-hub-cert-file", "cloud-hub-key-file",
		"coordinator-client-cert-file", "coordinator-client-key-file", "delegate-client-cert-file",
		"delegate-client-key-file")
	f.Former("remove it, a caller that rested may send the requests of half a minute of --caller-rate at once",
		"caller-burst")
	f.Former("remove it, and set GODEBUG=tlsmlkem=0 for the hub instead of false", "cloud-post-quantum")
	f.Former("remove it, hubs go to the cloud over --failover-grace-period", "failover-spread")
	f.Former("remove it, it is kube-system/kube-proxy as kubeadm names it", "kube-proxy-configmap")
	f.Former("remove it, and set --store-key-file="+NoKey+" instead of true", "store-plaintext-secrets")
	f.Former("remove it, it is a constant", "coordinator-wait", "max-stale-read", "relay-max-bytes", "return-spread",
		"ring-age", "ring-bytes", "store-every", "store-forget", "store-idle", "store-lazy", "upstream-watch-timeout")
}
