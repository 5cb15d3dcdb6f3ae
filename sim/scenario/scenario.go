package scenario

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"go.yaml.in/yaml/v3"
)

// Scenario is one scenario file. What is optional and absent has its default.
type Scenario struct {
	File string `yaml:"-"` // it was read from

	Name        string       `yaml:"name"`
	Description string       `yaml:"description,omitempty"`
	Seed        int64        `yaml:"seed"`
	Topology    Topology     `yaml:"topology"`
	Workload    Workload     `yaml:"workload,omitempty"` // absent in some scenarios with eviction
	Clients     []ClientKind `yaml:"clients,flow"`
	// the other ways that carry the same changes: report.WayReference, ….
	Compare      []string      `yaml:"compare,flow"`
	Study        Study         `yaml:"-"` // what it is about
	Faults       []Fault       `yaml:"faults,omitempty"`
	Batches      bool          `yaml:"-"` // the judge takes what a relay sends after 410, see invariant.Rules
	Expectations []Expectation `yaml:"expectations"`
}

// The words of the field batches.
const (
	batchesAllowed = "allowed"
	batchesRefused = "refused"
)

// Workload is what the cloud holds and how it changes.
type Workload struct {
	Services         int           `yaml:"services"`
	Endpoints        int           `yaml:"endpoints"`         // of each Service
	Widgets          int           `yaml:"widgets,omitempty"` // objects of a custom resource
	Quiet            time.Duration `yaml:"quiet,omitempty"`   // without changes, once all caches are there
	Changes          int           `yaml:"changes"`           // of one endpoint each
	ChangesPerSecond float64       `yaml:"changesPerSecond,omitempty"`
	Alone            int           `yaml:"alone,omitempty"` // changes of one object each, one a second, after all else
}

// ClientKind is a kind of client that runs on every node.
type ClientKind string

// The kinds of clients.
const (
	KubeProxy ClientKind = "kube-proxy" // EndpointSlices as kube-proxy watches them
	CoreDNS   ClientKind = "coredns"    // EndpointSlices as CoreDNS watches them
	JSON      ClientKind = "json"       // a client that knows no protobuf
	Kubectl   ClientKind = "kubectl"    // the tool itself
	Widgets   ClientKind = "widgets"    // a controller that watches a custom resource
)

// clientKinds are all of them.
var clientKinds = [...]ClientKind{KubeProxy, CoreDNS, JSON, Kubectl, Widgets}

// Identity is whose token such a client has, as runtime.Site calls it.
func (k ClientKind) Identity() string {
	if k == JSON || k == Widgets {
		return "json-client"
	}
	return string(k)
}

// Tools are the command-line tools that the clients need.
func (s *Scenario) Tools() []string {
	if slices.Contains(s.Clients, Kubectl) {
		return []string{"kubectl"}
	}
	return nil
}

// YAML writes s as a file that Parse reads back.
func (s *Scenario) YAML() ([]byte, error) {
	out := struct {
		*Scenario `yaml:",inline"`
		Batches   string `yaml:"batches"`
	}{s, batchesRefused}
	if s.Batches {
		out.Batches = batchesAllowed
	}
	var file yaml.Node
	err := file.Encode(out)
	if err == nil && s.Study.Name() != "" {
		err = s.withStudy(&file)
	}
	data, encoding := yaml.Marshal(&file)
	if err = errors.Join(err, encoding); err != nil {
		return nil, fmt.Errorf("write scenario %s: %w", s.Name, err)
	}
	return data, nil
}

// withStudy adds the field of the study, behind compare:.
func (s *Scenario) withStudy(file *yaml.Node) error {
	name, study := &yaml.Node{}, &yaml.Node{}
	err := errors.Join(name.Encode(s.Study.Name()), study.Encode(s.Study))
	for i := 0; i < len(file.Content); i += 2 {
		if file.Content[i].Value == "compare" {
			file.Content = slices.Insert(file.Content, i+2, name, study)
			break
		}
	}
	return err
}
