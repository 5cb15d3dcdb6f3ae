package filter

import (
	"bytes"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
	"sigs.k8s.io/yaml"

	"github.com/weir-edge/weir/impl/relay/wire"
)

const (
	rootsName     = "kube-root-ca.crt"
	rootsKey      = "ca.crt"
	kubeconfigKey = "kubeconfig.conf"
	podsRoots     = "/var/run/secrets/kubernetes.io/serviceaccount/ca.crt" // kube-root-ca.crt, as pods see it

	certificateType = "CERTIFICATE"

	// Numbers of protobuf fields, as in rules.go.
	configMapData = 2
	entryKey      = 1
	entryValue    = 2
)

var errNoKey = errors.New("it has no such key")

// rooted adds the node's authority to those that pods trust.
type rooted struct {
	untouched func(name, namespace string, err error)
}

func (r rooted) apply(v *view, enc wire.Encoding, o *wire.Object) ([]byte, bool, error) {
	if o.Name != rootsName || v.roots == "" {
		return o.Raw, true, nil
	}
	raw, err := configMap(enc, o, rootsKey, func(text string) (string, error) { return addRoots(text, v.roots) })
	if err != nil {
		r.untouched(o.Name, o.Namespace, fmt.Errorf("%s: %w", rootsKey, err))
		return o.Raw, true, nil
	}
	return raw, true, nil
}

// addRoots appends those certificates that a bundle does not have yet.
func addRoots(bundle, roots string) (string, error) {
	have := map[string]bool{}
	rest := []byte(bundle)
	for {
		block, after := pem.Decode(rest)
		if block == nil {
			break
		}
		if block.Type != certificateType {
			return "", fmt.Errorf("it has a %.40q, want certificates only", block.Type)
		}
		have[string(block.Bytes)], rest = true, after
	}
	if len(have) == 0 || bytes.Contains(rest, []byte("-----BEGIN")) {
		return "", fmt.Errorf("%d bytes that are no certificates in PEM", len(bundle))
	}
	out := bundle
	for block, more := pem.Decode([]byte(roots)); block != nil; block, more = pem.Decode(more) {
		if have[string(block.Bytes)] {
			continue
		}
		if !strings.HasSuffix(out, "\n") {
			out += "\n"
		}
		out += string(pem.EncodeToMemory(block))
	}
	return out, nil
}

// led sends kube-proxy to the hub.
type led struct {
	namespace, name string
	server          func() string
	untouched       func(name, namespace string, err error)
}

func (l led) apply(_ *view, enc wire.Encoding, o *wire.Object) ([]byte, bool, error) {
	if o.Namespace != l.namespace || o.Name != l.name {
		return o.Raw, true, nil
	}
	raw, err := configMap(enc, o, kubeconfigKey, func(text string) (string, error) { return lead(text, l.server()) })
	if err != nil {
		l.untouched(o.Name, o.Namespace, fmt.Errorf("%s: %w", kubeconfigKey, err))
		return o.Raw, true, nil
	}
	return raw, true, nil
}

// lead gives all clusters of a kubeconfig another server. Its certificate is verified by what pods trust; who calls is
// not touched.
func lead(kubeconfig, server string) (string, error) {
	var config map[string]any
	if err := yaml.Unmarshal([]byte(kubeconfig), &config); err != nil {
		return "", fmt.Errorf("it is no kubeconfig: %w", err)
	}
	clusters, _ := config["clusters"].([]any)
	if len(clusters) == 0 {
		return "", errors.New("it is no kubeconfig: it has no clusters")
	}
	altered := false
	for _, c := range clusters {
		named, _ := c.(map[string]any)
		cluster, ok := named["cluster"].(map[string]any)
		if !ok {
			return "", errors.New("it is no kubeconfig: one of its clusters is none")
		}
		for _, key := range []string{
			"certificate-authority-data", "insecure-skip-tls-verify", "tls-server-name", "proxy-url",
		} {
			if _, has := cluster[key]; has {
				delete(cluster, key)
				altered = true
			}
		}
		for key, want := range map[string]string{"server": server, "certificate-authority": podsRoots} {
			if cluster[key] != want {
				cluster[key] = want
				altered = true
			}
		}
	}
	if !altered {
		return kubeconfig, nil
	}
	text, err := yaml.Marshal(config)
	return string(text), err
}

func configMapJSON(raw []byte, key string, change func(string) (string, error)) ([]byte, error) {
	altered := false
	out, err := patch(raw, "data", func(data object) error {
		var text string
		if err := json.Unmarshal(data[key], &text); err != nil {
			return errors.Join(errNoKey, err)
		}
		now, err := change(text)
		if err == nil && now != text {
			data.set(key, now)
			altered = true
		}
		return err
	})
	if !altered {
		out = raw
	}
	return out, err
}

func configMapProtobuf(raw []byte, key string, change func(string) (string, error)) ([]byte, error) {
	found, altered := false, false
	out, err := wire.Rebuild(raw, func(out []byte, num protowire.Number, v, whole []byte) ([]byte, error) {
		if num != configMapData || v == nil {
			return append(out, whole...), nil
		}
		name, text, err := entry(v)
		if err != nil || name != key {
			return append(out, whole...), err
		}
		found = true
		now, err := change(text)
		if err != nil || now == text {
			return append(out, whole...), err
		}
		altered = true
		e := appendString(appendString(nil, entryKey, key), entryValue, now)
		return protowire.AppendBytes(protowire.AppendTag(out, configMapData, protowire.BytesType), e), nil
	})
	switch {
	case err == nil && !found:
		err = errNoKey
	case !altered:
		out = raw
	}
	return out, err
}

// entry is one of a map of strings. Of a field that is there twice the last one counts.
func entry(msg []byte) (key, value string, err error) {
	err = wire.EachField(msg, func(num protowire.Number, v, _ []byte) error {
		if v == nil && slices.Contains([]protowire.Number{entryKey, entryValue}, num) {
			return errMalformed
		}
		switch num {
		case entryKey:
			key = string(v)
		case entryValue:
			value = string(v)
		}
		return nil
	})
	return key, value, err
}

// configMap is the change of one key of a ConfigMap.
func configMap(enc wire.Encoding, o *wire.Object, key string, change func(text string) (string, error)) (
	[]byte, error) {
	if enc == wire.JSON {
		return configMapJSON(o.Raw, key, change)
	}
	return configMapProtobuf(o.Raw, key, change)
}
