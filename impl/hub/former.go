package hub

import "github.com/weir-edge/weir/impl/cli"

// formerFiles are flags that are gone and named a file which has its name by another flag now. Joins of before wrote
// them, so a hub that is upgraded takes them where they name just that file.
type formerFiles map[string]*string

// former declares the flags that are gone, since a hub that is upgraded may still be given them.
func former(f *cli.Flags) formerFiles {
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
	f.Former("give --cloud-server class=URL", "class-server")
	f.Former("put the file into --etc-dir as "+cloudCA, "cloud-ca-file")
	f.Former("put the file into --etc-dir as "+poolCA, "coordinator-ca-file")
	f.Former("put key and certificate into --etc-dir as "+servingPair, "tls-cert-file", "tls-private-key-file")
	f.Former("give the address with --health-port, as in 10.0.0.7:10267", "health-bind-address")
	f.Former("give the address with --pool-port, as in 10.0.0.7:10269", "pool-bind-address")
	files := formerFiles{}
	for _, name := range []string{
		"bootstrap-token-file", "cloud-client-key-file", "node-authority-file", "store-generated-key-file",
	} {
		files[name] = f.String(name, "", "")
		_ = f.MarkHidden(name)
	}
	return files
}

// check reports a file that is not where it is looked for.
func (files formerFiles) check(c Config) error {
	for name, is := range map[string]struct{ path, instead string }{
		"bootstrap-token-file":     {c.etc(bootstrapToken), "put the file into --etc-dir as " + bootstrapToken},
		"cloud-client-key-file":    {c.CloudClientCertFile, "put the key into --cloud-client-cert-file, too"},
		"node-authority-file":      {c.etc(nodeAuthority), "it is " + inEtc(nodeAuthority)},
		"store-generated-key-file": {c.etc(storeKey), "it is " + inEtc(storeKey) + ", or give --store-key-file"},
	} {
		if given := *files[name]; given != "" && given != is.path {
			return cli.Usage("--"+name, given, "no flag any more: "+is.instead)
		}
	}
	return nil
}
