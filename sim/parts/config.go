package parts

import (
	"encoding/json"
	"fmt"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/weir-edge/weir/sim/testca"
)

// Flags are further flags of a command by name, without dashes; lists repeat the flag. They win over fields.
type Flags map[string]any

// HubConfig is the --config file of weir-hub: its keys are the names of the flags, and what is left out keeps the
// command's default.
type HubConfig struct {
	NodeName string `json:"node-name,omitempty"`
	NodePool string `json:"nodepool-name,omitempty"`

	CloudServers    []string `json:"cloud-server,omitempty"` // "https://…", and "pool=https://…"
	CloudClientCert string   `json:"cloud-client-cert-file,omitempty"`
	// EtcDir is the folder of the config, unless another is named.
	EtcDir string `json:"etc-dir,omitempty"`

	BindAddress  string `json:"bind-address,omitempty"`
	SecurePort   int    `json:"secure-port,omitempty"`
	ClientCAFile string `json:"client-ca-file,omitempty"`
	Health       string `json:"health-port"` // with its address
	ProxyPort    int    `json:"proxy-port"`
	DataDir      string `json:"data-dir,omitempty"`

	PoolScopeResources []string `json:"pool-scope-resources,omitempty"`

	EnableCoordinator bool   `json:"enable-coordinator"`
	PoolDoor          string `json:"pool-port,omitempty"` // with its address
	// where the coordinator reaches it, if there is a link in between.
	PoolAddress           string   `json:"pool-address,omitempty"`
	CoordinatorServers    []string `json:"coordinator-server,omitempty"`
	LeaderHubs            []string `json:"leader-hub,omitempty"`             // node=IP:port
	EnrolCoordinatorDir   string   `json:"enrol-coordinator-dir,omitempty"`  // of the coordinator on its node
	EnrolCoordinatorHosts []string `json:"enrol-coordinator-host,omitempty"` // likewise
	CoordinatorReplica    string   `json:"coordinator-replica,omitempty"`    // likewise

	ImagesPort string `json:"images-port,omitempty"` // with its address; empty: it serves no images
	ImagesRoot string `json:"images-root,omitempty"` // content store of its node's containerd

	LogLevel string `json:"log-level,omitempty"`

	Flags Flags `json:"-"`
}

// Files of a hub's EtcDir.
const (
	CloudCAFile       = "cloud-ca.crt"
	PoolCAFile        = "pool-ca.crt"
	ServingFile       = "serving.pem"        // "": the hub's certificate is of its node's own authority
	NodeAuthorityFile = "node-authority.crt" // by which its clients know that
)

// CoordinatorConfig is the --config file of weir-coordinator.
type CoordinatorConfig struct {
	NodePool           string   `json:"nodepool-name"`
	BindAddress        string   `json:"bind-address"`
	SecurePort         int      `json:"secure-port"`
	DataDir            string   `json:"data-dir"`
	CertificatesDir    string   `json:"certificates-dir"`
	PoolScopeResources []string `json:"pool-scope-resources,omitempty"`

	// Of one of three replicas.
	Name           string   `json:"name,omitempty"`
	InitialCluster []string `json:"initial-cluster,omitempty"` // "name=https://…", of etcd's peers
	ReplicaServers []string `json:"replica-server,omitempty"`  // "name=https://…", of the API
	LogLevel       string   `json:"log-level,omitempty"`

	Flags Flags `json:"-"`
}

// Write writes the file into a folder and returns its path; and beside it that of a hub of before, see former.
func (c HubConfig) Write(dir string) (string, error) {
	if c.EtcDir == "" { // hubs of one machine share none
		c.EtcDir = dir
	}
	if err := c.writeFormer(dir); err != nil {
		return "", err
	}
	return write(dir, configFile, c, c.Flags)
}

// Text is what the file says, and no more than what c does.
func (c HubConfig) Text() ([]byte, error) { return encode(c, c.Flags) }

// Write writes the file into a folder and returns its path.
func (c CoordinatorConfig) Write(dir string) (string, error) {
	return write(dir, configFile, c, c.Flags)
}

const configFile = "config.yaml"

func write(dir, name string, config any, further Flags) (string, error) {
	data, err := encode(config, further)
	if err != nil {
		return "", err
	}
	return testca.WriteFile(dir, name, data)
}

// encode writes a config with its further flags as YAML.
func encode(config any, further Flags) ([]byte, error) {
	data, err := json.Marshal(config)
	if err != nil {
		return nil, fmt.Errorf("write config: %w", err)
	}
	var fields map[string]any
	if err := json.Unmarshal(data, &fields); err != nil {
		return nil, fmt.Errorf("write config: %w", err)
	}
	for name, value := range further {
		switch v := value.(type) {
		case time.Duration:
			value = v.String()
		case int, int64:
			value = fmt.Sprint(v) // a large number would come back in exponent notation
		}
		fields[name] = value
	}
	data, err = yaml.Marshal(fields)
	if err != nil {
		return nil, fmt.Errorf("write config: %w", err)
	}
	return data, nil
}
