package testca

import (
	"errors"
	"fmt"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Kubeconfig returns a kubeconfig with everything inline: server, its authority, and exactly one credential,
// a client certificate or a bearer token.
func Kubeconfig(server string, caPEM []byte, client *Pair, token string) ([]byte, error) {
	return KubeconfigOf(&clientcmdapi.Cluster{Server: server, CertificateAuthorityData: caPEM}, client, token)
}

// KubeconfigOf is Kubeconfig of a cluster whose authorities may be in a file, which is read by the one that uses it.
func KubeconfigOf(cluster *clientcmdapi.Cluster, client *Pair, token string) ([]byte, error) {
	if (client == nil) == (token == "") {
		return nil, errors.New("write kubeconfig: want a client certificate or a token, one of them")
	}
	user := &clientcmdapi.AuthInfo{Token: token}
	if client != nil {
		user.ClientCertificateData, user.ClientKeyData = client.CertPEM, client.KeyPEM
	}
	const name = "weir"
	data, err := clientcmd.Write(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{name: cluster},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{name: user},
		Contexts:       map[string]*clientcmdapi.Context{name: {Cluster: name, AuthInfo: name}},
		CurrentContext: name,
	})
	if err != nil {
		return nil, fmt.Errorf("write kubeconfig: %w", err)
	}
	return data, nil
}
