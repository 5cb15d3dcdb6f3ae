package manager

import (
	"errors"
	"strings"
	"testing"
	"time"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	"k8s.io/apimachinery/pkg/runtime/serializer"

	"github.com/weir-edge/weir/impl/cli"
	"github.com/weir-edge/weir/impl/manager/manifests"
	"github.com/weir-edge/weir/impl/manager/verdict"
)

func TestConfig(t *testing.T) {
	good := func() Config {
		return Config{
			LeaderElect: true, LeaderElectLeaseDuration: 15 * time.Second, LeaderElectRenewDeadline: 10 * time.Second,
			LeaderElectRetryPeriod: 2 * time.Second,
			NodeMonitorGracePeriod: 50 * time.Second, WhenSilent: "keep",
		}
	}
	if err := good().Validate(); err != nil {
		t.Fatal(err)
	}
	for field, change := range map[string]func(*Config){
		"--node-monitor-grace-period":   func(c *Config) { c.NodeMonitorGracePeriod = 0 },
		"--pool-silent-after":           func(c *Config) { c.PoolSilentAfter = time.Minute },
		"--leader-elect-lease-duration": func(c *Config) { c.LeaderElectLeaseDuration = 10 * time.Second },
		"--leader-elect-renew-deadline": func(c *Config) { c.LeaderElectRetryPeriod = 5 * time.Second },
		"--when-silent":                 func(c *Config) { c.WhenSilent = "evict" },
		"--certificates":                func(c *Config) { c.Certificates = "on" },
		"--gate":                        func(c *Config) { c.Gate, c.GateCAFile = "10.0.0.7:10273", "ca.crt" },
		"--gate-ca-file":                func(c *Config) { c.Gate = "https://10.0.0.7:10273" },
	} {
		c := good()
		change(&c)
		var usage *cli.UsageError
		if err := c.Validate(); !errors.As(err, &usage) || usage.Field != field {
			t.Errorf("%s: %v", field, err)
		}
	}
	c := good()
	if c.GateCAFile = "ca.crt"; c.Validate() == nil {
		t.Error("the authorities of a gate that nobody names are accepted")
	}
	c = good()
	c.Kubeconfig = "/no/such/file"
	if _, err := New(c); cli.ExitCode(err) != 2 {
		t.Errorf("a kubeconfig that does not exist: %v", err)
	}
}

func TestPolicy(t *testing.T) {
	for text, want := range map[string]verdict.Policy{
		"keep": {}, "keep\n": {}, "evict:0s": {Evict: true}, "evict:1h30m": {Evict: true, After: 90 * time.Minute},
	} {
		if p, err := parsePolicy(text); err != nil || p != want {
			t.Errorf("%q: %+v, %v", text, p, err)
		}
	}
	for _, text := range []string{"", "evict", "evict:", "evict:soon", "evict:-1h", "keep:1h", "delete", "evict:1h:2h"} {
		if p, err := parsePolicy(text); err == nil || p.Evict {
			t.Errorf("%q is taken: %+v", text, p)
		}
	}
}

// TestManifests: the manager reads what it compares with the cluster, as strictly as the API does.
func TestManifests(t *testing.T) {
	scheme, err := newScheme()
	if err == nil {
		err = flowcontrolv1.AddToScheme(scheme) // which it does not look at
	}
	if err != nil {
		t.Fatal(err)
	}
	decoder := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
	docs := strings.Split(manifests.Policies()+"---\n"+manifests.RBAC(), "\n---\n")
	for _, doc := range docs {
		if _, _, err := decoder.Decode([]byte(doc), nil, nil); err != nil {
			t.Errorf("%v:\n%s", err, doc)
		}
	}
	if len(docs) < 15 {
		t.Errorf("%d manifests", len(docs))
	}
}
