package nodepool

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Values of Spec.Type.
const (
	Edge  = "Edge"
	Cloud = "Cloud"
)

// Values of Spec.LeaderElectionStrategy. Empty means Random.
const (
	Random = "random"
	Mark   = "mark"
)

// LeaderReady is the condition that reports whether the pool has the leader hubs that it asks for.
const LeaderReady = "LeaderReady"

// LeaderHubSynced is the condition that reports whether the objects leader-hub-<pool> say what the pool's spec and
// status say. It is Weir's own.
const LeaderHubSynced = "LeaderHubSynced"

// ScopeAccepted is the condition that reports whether the pool may share all that poolScopeMetadata names. It is Weir's
// own.
const ScopeAccepted = "ScopeAccepted"

// AttributesAccepted is the condition that reports whether all labels, annotations and taints of the spec may be put on
// nodes. It is Weir's own.
const AttributesAccepted = "AttributesAccepted"

// Spec is what a person asks of a pool.
//
// +kubebuilder:validation:XValidation:rule="!has(self.hostNetwork) || !self.hostNetwork || !has(self.type) || self.type != 'Cloud'",message="hostNetwork is for pools of type Edge"
// +kubebuilder:validation:XValidation:rule="(has(self.interConnectivity) && self.interConnectivity) == (has(oldSelf.interConnectivity) && oldSelf.interConnectivity)",message="interConnectivity cannot be changed: make another pool"
// +kubebuilder:validation:XValidation:rule="(has(self.hostNetwork) && self.hostNetwork) == (has(oldSelf.hostNetwork) && oldSelf.hostNetwork)",message="hostNetwork cannot be changed: make another pool"
// +kubebuilder:validation:XValidation:rule="(has(self.type) ? self.type : 'Edge') == (has(oldSelf.type) ? oldSelf.type : 'Edge')",message="type cannot be changed: make another pool"
type Spec struct {
	// Type is Edge or Cloud. It cannot be changed.
	// +optional
	// +kubebuilder:default=Edge
	// +kubebuilder:validation:Enum=Edge;Cloud
	Type string `json:"type,omitempty"`

	// HostNetwork says that pods of the pool's nodes use the network of their host. It cannot be changed.
	// +optional
	HostNetwork bool `json:"hostNetwork,omitempty"`

	// Labels are for all nodes of the pool, over what is there. They are removed when a node leaves.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	Labels map[string]string `json:"labels,omitempty"`

	// Annotations are for all nodes of the pool, over what is there. They are removed when a node leaves.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	Annotations map[string]string `json:"annotations,omitempty"`

	// Taints are for all nodes of the pool. They are removed when a node leaves.
	// +optional
	// +kubebuilder:validation:MaxItems=64
	Taints []corev1.Taint `json:"taints,omitempty"`

	// InterConnectivity says that the pool's nodes reach each other. It cannot be changed.
	// +optional
	InterConnectivity bool `json:"interConnectivity,omitempty"`

	// EnableLeaderElection asks for leader hubs, from which the others of the pool read. The three fields below count only
	// with it.
	// +optional
	EnableLeaderElection bool `json:"enableLeaderElection,omitempty"`

	// LeaderElectionStrategy is random, any ready node, or mark, those that leaderNodeLabelSelector selects.
	// +optional
	// +kubebuilder:validation:Enum="";random;mark
	LeaderElectionStrategy string `json:"leaderElectionStrategy,omitempty"`

	// LeaderNodeLabelSelector are labels, all of which a node has that may lead. It counts with the strategy mark.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	LeaderNodeLabelSelector map[string]string `json:"leaderNodeLabelSelector,omitempty"`

	// LeaderReplicas is how many nodes lead. Absent, 0 and less mean 1.
	// +optional
	LeaderReplicas int32 `json:"leaderReplicas,omitempty"`

	// PoolScopeMetadata are the resources that the pool shares. Secrets are not shared, and each resource in one version
	// only.
	// +optional
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:XValidation:rule="self.all(r, r.group != '' || r.resource != 'secrets')",message="Secrets are never shared in a pool"
	// +kubebuilder:validation:XValidation:rule="self.all(r, self.all(o, o.group != r.group || o.resource != r.resource || o.version == r.version))",message="a resource is shared in one version only"
	PoolScopeMetadata []Resource `json:"poolScopeMetadata,omitempty"`
}

// Resource is a kind of objects, as the API names it. Its fields are those of metav1.GroupVersionResource.
type Resource struct {
	// Group is its API group, empty for that of Pods.
	// +kubebuilder:validation:MaxLength=253
	Group string `json:"group"`

	// Version of the API.
	// +kubebuilder:validation:MaxLength=63
	Version string `json:"version"`

	// Resource is its name in the plural, and lower case.
	// +kubebuilder:validation:MaxLength=63
	Resource string `json:"resource"`
}

// Status is what weir-manager sees of a pool.
type Status struct {
	// ReadyNodeNum is how many nodes of the pool are Ready.
	ReadyNodeNum int32 `json:"readyNodeNum"`

	// UnreadyNodeNum is how many are not.
	UnreadyNodeNum int32 `json:"unreadyNodeNum"`

	// Nodes are the names of all nodes of the pool, sorted.
	// +optional
	Nodes []string `json:"nodes,omitempty"`

	// LeaderEndpoints are the leader hubs.
	// +optional
	LeaderEndpoints []Leader `json:"leaderEndpoints,omitempty"`

	// LeaderNum is how many leader hubs there are.
	// +optional
	LeaderNum int32 `json:"leaderNum,omitempty"`

	// LeaderLastElectedTime is when the leader hubs changed last.
	// +optional
	LeaderLastElectedTime *metav1.Time `json:"leaderLastElectedTime,omitempty"`

	// Mode is how the pool shares, as its Pool says: Coordinator or LeaderHubs. It and the three below are Weir's own: a
	// CRD that OpenYurt installed does not keep them.
	// +optional
	Mode string `json:"mode,omitempty"`

	// HeardNodeNum is how many nodes of the pool are heard, by themselves or through the pool.
	// +optional
	HeardNodeNum *int32 `json:"heardNodeNum,omitempty"`

	// CutOffNodeNum is how many of those are heard through the pool alone: they do not reach the cloud.
	// +optional
	CutOffNodeNum *int32 `json:"cutOffNodeNum,omitempty"`

	// SilentSince is when the last node of the pool was heard, while none is. What the cloud shows of the pool is as old
	// as that.
	// +optional
	SilentSince *metav1.Time `json:"silentSince,omitempty"`

	// Conditions tell how the pool is.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Leader is a leader hub.
type Leader struct {
	// NodeName is its node.
	NodeName string `json:"nodeName"`

	// Address is the IP address of the node.
	Address string `json:"address"`
}

// NodePool is a group of nodes that reach each other well and the cloud badly.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,path=nodepools,shortName=np,categories=yurt
// +kubebuilder:subresource:status
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:name="Type",type="string",JSONPath=".spec.type"
// +kubebuilder:printcolumn:name="ReadyNodes",type="integer",JSONPath=".status.readyNodeNum"
// +kubebuilder:printcolumn:name="NotReadyNodes",type="integer",JSONPath=".status.unreadyNodeNum"
// +kubebuilder:printcolumn:name="LeaderNodes",type="integer",JSONPath=".status.leaderNum"
// +kubebuilder:printcolumn:name="LeaderElectionAge",type="date",JSONPath=".status.leaderLastElectedTime"
// +kubebuilder:printcolumn:name="Mode",type="string",JSONPath=".status.mode"
// +kubebuilder:printcolumn:name="Heard",type="integer",JSONPath=".status.heardNodeNum"
// +kubebuilder:printcolumn:name="CutOff",type="integer",JSONPath=".status.cutOffNodeNum"
// +kubebuilder:printcolumn:name="Leader",type="string",JSONPath=".status.leaderEndpoints[*].nodeName"
// +kubebuilder:printcolumn:name="Silent",type="date",JSONPath=".status.silentSince"
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp"
type NodePool struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +kubebuilder:default={}
	Spec   Spec   `json:"spec,omitempty"`
	Status Status `json:"status,omitempty"`
}

// List is a list of NodePools.
//
// +kubebuilder:object:root=true
type List struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []NodePool `json:"items"`
}
