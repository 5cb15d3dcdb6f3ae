package pool

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Values of Spec.Mode and Status.Mode.
const (
	ModeCoordinator = "Coordinator"
	ModeLeaderHubs  = "LeaderHubs"
)

// Values of WhenSilent.Action.
const (
	Keep  = "Keep"
	Evict = "Evict"
)

// MaxHubs bounds what the status of a Pool says of single hubs.
const MaxHubs = 1000

// Conditions of a Pool.
const (
	// Ready reports whether the pool does what it is for: it has a leader, and each hub that is heard reads what the pool
	// shares inside the pool, fresh. Its reason is the first thing that is wrong.
	Ready = "Ready"
	// Described reports whether there is a NodePool of this name.
	Described = "Described"
	// ModeApplied reports whether the hubs of the pool are told the mode that the spec asks for.
	ModeApplied = "ModeApplied"
	// Heard reports whether a node of the pool is heard.
	Heard = "Heard"
	// ScopeAccepted reports whether the pool may share all that poolScopeMetadata of its NodePool names.
	ScopeAccepted = "ScopeAccepted"
	// ReachAccepted reports whether hubs are told all that the spec says of what the cloud may reach. It is not there if
	// that is nothing.
	ReachAccepted = "ReachAccepted"
	// CoordinatorPlaced reports whether the coordinator runs where the spec asks for it.
	CoordinatorPlaced = "CoordinatorPlaced"
	// CertificatesCurrent reports whether no certificate of the pool, and not its authority, ends soon without a
	// successor, as far as the hubs have told.
	CertificatesCurrent = "CertificatesCurrent"
	// NodesInstalled reports whether each node of the pool has joined, where weir-manager sees to that.
	NodesInstalled = "NodesInstalled"
	// DeletionsConfirmed is False while nodes of the pool were deleted, and nobody has confirmed it. Else it is not there.
	DeletionsConfirmed = "DeletionsConfirmed"
)

// Values of Images.Sharing and ImageRegistry.Sharing.
const (
	SharingEnabled  = "Enabled"
	SharingJudged   = "Judged"
	SharingDisabled = "Disabled"
)

// Spec is what a person asks of a pool beside its NodePool.
type Spec struct {
	// Mode is how the pool shares: by its coordinator, or by its leader hubs. It may be changed while the pool works.
	// +optional
	// +kubebuilder:default=Coordinator
	// +kubebuilder:validation:Enum=Coordinator;LeaderHubs
	Mode string `json:"mode,omitempty"`

	// Coordinator is the coordinator of the pool. It counts in the mode Coordinator. Without it hubs use the one of their
	// flags.
	// +optional
	Coordinator *Coordinator `json:"coordinator,omitempty"`

	// WhenSilent is what happens to the pods of the pool while none of its nodes is heard. Without it --when-silent of
	// weir-manager counts.
	// +optional
	WhenSilent *WhenSilent `json:"whenSilent,omitempty"`

	// Offline is what is valid in the pool while there is no sign of the cloud.
	// +optional
	Offline *Offline `json:"offline,omitempty"`

	// Images is how nodes of the pool share images, where their hubs are mirrors of registries. Without it they share
	// those of all registries.
	// +optional
	Images *Images `json:"images,omitempty"`

	// Reach is what the cloud may reach in the pool through weir-gate, beside the kubelets of its nodes: networks of pods,
	// machines beside the nodes. They have 128 ports and ranges of ports together at most. Without it: the kubelets alone.
	// +optional
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:XValidation:rule="self.map(r, has(r.ports) ? size(r.ports) : 1).sum() <= 128",message="all networks together have 128 ports and ranges of ports at most"
	// +listType=map
	// +listMapKey=cidr
	Reach []Reach `json:"reach,omitempty"`
}

// Reach is a network of a pool that the cloud may reach.
type Reach struct {
	// CIDR is the network, as in 10.244.0.0/16 or fd00:1::/64, or a machine, as in 10.0.9.7/32.
	// +kubebuilder:validation:MaxLength=43
	// +kubebuilder:validation:XValidation:rule="isCIDR(self) && cidr(self) == cidr(self).masked()",message="the address of a network and its length, as in 10.244.0.0/16 or fd00:1::/64"
	CIDR string `json:"cidr"`

	// Ports are those that may be reached there. None: all.
	// +optional
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +listType=atomic
	Ports []ReachPort `json:"ports,omitempty"`
}

// ReachPort is a port, or a range of ports.
//
// +kubebuilder:validation:XValidation:rule="!has(self.endPort) || self.endPort >= self.port",message="endPort is not before port"
type ReachPort struct {
	// Port is the port, or the first one of a range.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port int32 `json:"port"`

	// EndPort is the last port of the range. None: it is one port.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	EndPort int32 `json:"endPort,omitempty"`
}

// Images is how nodes of a pool share images.
type Images struct {
	// Sharing is about all registries that are not named. Enabled: nodes read images from each other. Judged: they do so,
	// and the registry is asked at each pull while the cloud is there, for its images need a secret. Disabled: each node
	// pulls them for itself. If no registry is shared, no hub shows what its node has.
	// +optional
	// +kubebuilder:default=Enabled
	// +kubebuilder:validation:Enum=Enabled;Judged;Disabled
	Sharing string `json:"sharing,omitempty"`

	// Registries are those for which something else counts.
	// +optional
	// +kubebuilder:validation:MaxItems=32
	// +listType=map
	// +listMapKey=host
	Registries []ImageRegistry `json:"registries,omitempty"`

	// Window are the hours of each day in which weir-manager lets nodes of the pool pull images ahead of a roll-out. None:
	// all hours. What a person or a controller rolls out is pulled at any hour.
	// +optional
	// +kubebuilder:validation:MaxItems=8
	// +listType=atomic
	Window []ImageWindow `json:"window,omitempty"`
}

// ImageWindow are hours of each day, by the clock on the wall of a time zone.
//
// +kubebuilder:validation:XValidation:rule="self.start != self.end",message="start and end are two times; without a window all hours count"
type ImageWindow struct {
	// Start is when they begin, as in 22:00.
	// +kubebuilder:validation:Pattern=`^([01][0-9]|2[0-3]):[0-5][0-9]$`
	Start string `json:"start"`

	// End is when they end, as in 05:00. If it is before Start, it is that of the next day.
	// +kubebuilder:validation:Pattern=`^([01][0-9]|2[0-3]):[0-5][0-9]$`
	End string `json:"end"`

	// TimeZone is the one of both, as in Europe/Berlin. UTC is the default.
	// +optional
	// +kubebuilder:default=UTC
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self != 'Local' && timestamp('2026-01-01T00:00:00Z').getHours(self) >= 0",message="a time zone, as in Europe/Berlin"
	TimeZone string `json:"timeZone,omitempty"`
}

// ImageRegistry is how nodes of a pool share the images of one registry.
type ImageRegistry struct {
	// Host is that of the names of its images, in small letters, and the port if there is one: docker.io, or
	// registry.example:5000.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([a-z0-9.-]*[a-z0-9])?|\[[0-9a-f:.]+\])(:[0-9]{1,5})?$`
	Host string `json:"host"`

	// Sharing is Enabled, Judged or Disabled, as it is for all registries.
	// +kubebuilder:validation:Enum=Enabled;Judged;Disabled
	Sharing string `json:"sharing"`
}

// Offline is what is valid in a pool while there is no sign of the cloud.
type Offline struct {
	// CertificateAllowance is for how long after its end a certificate of a hub or of the coordinator counts inside the
	// pool, to read. 2160h, 90 days, is the default and the most; 0s is none. Hubs and coordinators that have not heard of
	// it go by 90 days.
	// +optional
	// +kubebuilder:default="2160h"
	// +kubebuilder:validation:Pattern=`^([0-9]{1,9}(\.[0-9]{1,9})?(h|m|s|ms))+$`
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="duration(self) <= duration('2160h')",message="a duration of 2160h at most, as in 720h"
	CertificateAllowance string `json:"certificateAllowance,omitempty"`
}

// Coordinator says who runs the coordinator of a pool, and where: weir-manager, if there are no servers.
//
// +kubebuilder:validation:XValidation:rule="!has(self.servers) || !has(self.image)",message="image is for a coordinator that weir-manager runs: none with servers"
// +kubebuilder:validation:XValidation:rule="!has(self.servers) || !has(self.nodes) && !has(self.nodeSelector)",message="nodes and nodeSelector are for a coordinator that weir-manager runs: none with servers"
// +kubebuilder:validation:XValidation:rule="!has(self.servers) || !has(self.replicas) && !has(self.replaceAfter) && !has(self.memoryLimit)",message="replicas, replaceAfter and memoryLimit are for a coordinator that weir-manager runs: none with servers"
// +kubebuilder:validation:XValidation:rule="!has(self.nodes) || !has(self.nodeSelector)",message="either nodes or nodeSelector"
// +kubebuilder:validation:XValidation:rule="!has(self.nodes) || !has(self.replicas) || size(self.nodes) >= self.replicas",message="nodes are at least as many as replicas"
// +kubebuilder:validation:XValidation:rule="!has(self.servers) || size(self.servers) != 2",message="servers are 1 or 3"
type Coordinator struct {
	// Servers are the addresses of a coordinator that somebody else runs, a service of its host for example: one, or those
	// of three replicas.
	// +optional
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=3
	// +kubebuilder:validation:items:MaxLength=300
	// +kubebuilder:validation:items:Pattern=`^https://([a-z0-9.-]+|\[[0-9a-f:]+\]):[0-9]{1,5}$`
	// +listType=set
	Servers []string `json:"servers,omitempty"`

	// Image is that of weir-coordinator, which weir-manager runs as a Pod on a node of the pool for each replica, if there
	// are no servers. Without it that is the image of the release, and another one after an upgrade of the release.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=500
	Image string `json:"image,omitempty"`

	// Replicas is how many there are: 1, or 3 of which any one may die. 1 is the default.
	// +optional
	// +kubebuilder:validation:Enum=1;3
	Replicas int32 `json:"replicas,omitempty"`

	// ReplaceAfter is for how long a node is lost, while others of the pool are heard, until its replica is placed again.
	// 5m is the default.
	// +optional
	// +kubebuilder:validation:Pattern=`^([0-9]{1,9}(\.[0-9]{1,9})?(h|m|s|ms))+$`
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('10s')",message="a duration of 10s or more, as in 5m"
	ReplaceAfter string `json:"replaceAfter,omitempty"`

	// MemoryLimit is the most memory that a replica may take, in Mi or Gi. 512Mi is the default. It counts from the next
	// time that a replica is placed.
	// +optional
	// +kubebuilder:validation:Pattern=`^[1-9][0-9]{0,5}(Mi|Gi)$`
	MemoryLimit string `json:"memoryLimit,omitempty"`

	// Nodes are the names of the nodes that may run one, those that are to be preferred first. None: all of the pool that
	// nodeSelector selects.
	// +optional
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	// +listType=set
	Nodes []string `json:"nodes,omitempty"`

	// NodeSelector are labels, all of which a node has that may run one. None: all nodes of the pool.
	// +optional
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=64
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`
}

// WhenSilent is what happens to the pods of a pool of which no node is heard.
//
// +kubebuilder:validation:XValidation:rule="(self.action == 'Evict') == has(self.after)",message="after belongs to the action Evict, which needs it"
type WhenSilent struct {
	// Action is Keep, pods and their endpoints stay as they were, or Evict, the pool is given up when it has been silent
	// for so long.
	// +kubebuilder:validation:Enum=Keep;Evict
	Action string `json:"action"`

	// After is for how long the pool has to be silent before it is given up.
	// +optional
	// +kubebuilder:validation:Pattern=`^([0-9]{1,9}(\.[0-9]{1,9})?(h|m|s|ms))+$`
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s')",message="a duration, as in 1h or 90s"
	After string `json:"after,omitempty"`
}

// Status is what weir-manager sees of a pool.
type Status struct {
	// ObservedGeneration is that of the spec which the status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Mode is how the hubs of the pool are told to share.
	// +optional
	Mode string `json:"mode,omitempty"`

	// Members is how many nodes have the label of the pool.
	Members int32 `json:"members"`

	// Heard is how many of them are heard, by themselves or through the pool.
	Heard int32 `json:"heard"`

	// CutOff is how many of those are heard through the pool alone: they do not reach the cloud.
	CutOff int32 `json:"cutOff"`

	// Leader names the leader hubs, with commas between, in the mode LeaderHubs. In the mode Coordinator the pool itself
	// decides, and this is who told last that it leads.
	// +optional
	Leader string `json:"leader,omitempty"`

	// SilentSince is when the last node of the pool was heard, while none is. What the cloud shows of the pool is as old
	// as that.
	// +optional
	SilentSince *metav1.Time `json:"silentSince,omitempty"`

	// Coordinators are the addresses of the coordinator that hubs are told.
	// +optional
	Coordinators []string `json:"coordinators,omitempty"`

	// Replicas are those of the coordinator that weir-manager runs.
	// +optional
	// +listType=atomic
	Replicas []Replica `json:"replicas,omitempty"`

	// Cluster names those replicas together: replicas of another cluster are never taken for some of this one.
	// +optional
	Cluster string `json:"cluster,omitempty"`

	// Placements counts how often a replica was placed on a node.
	// +optional
	Placements int64 `json:"placements,omitempty"`

	// Hubs are what the hubs of the pool have told of themselves, by name of their node, 1000 at most.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=1000
	Hubs []Hub `json:"hubs,omitempty"`

	// FreshnessSeconds is the age of the oldest relay of all hubs that have told, each when it told last.
	// +optional
	FreshnessSeconds *int64 `json:"freshnessSeconds,omitempty"`

	// UplinkBytes are all bytes between these hubs and the cloud since each of them was started.
	// +optional
	UplinkBytes *int64 `json:"uplinkBytes,omitempty"`

	// SavedBytes are those that clients got from relays of the pool, less those by which its hubs fetched what the pool
	// shares, since each of them was started.
	// +optional
	SavedBytes *int64 `json:"savedBytes,omitempty"`

	// Conditions tell how the pool is.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// HubEdge is a way inside the pool that fails, as the hub of a node found it.
type HubEdge struct {
	// Way is between which parts it leads: hub -> coordinator, hub -> hub, or coordinator -> hub.
	Way string `json:"way"`

	// Peer is the other end: the node of a hub, or the address of a coordinator.
	Peer string `json:"peer"`

	// Port that is called.
	Port int32 `json:"port"`

	// Cause is why it fails, in one word: refused, unreachable, timeout, broken, mute, stalls, certificate, clock,
	// stranger, unnamed or other.
	Cause string `json:"cause"`
}

// Hub is what the hub of a node has told of itself. Bytes are since it was started.
type Hub struct {
	// Node is that of the hub.
	Node string `json:"node"`

	// Version of the hub.
	Version string `json:"version"`

	// Role of the hub in its pool: Leader, Follower or Pending.
	Role string `json:"role"`

	// Cause is why it is Pending, in one word: unconfigured, starting, refused, unreachable, timeout, broken, certificate,
	// clock, stranger, unnamed or other. It is absent if the hub is not, or does not say.
	// +optional
	Cause string `json:"cause,omitempty"`

	// Told is when it told that.
	Told metav1.Time `json:"told"`

	// Started is when the hub was started, by its own clock.
	Started metav1.Time `json:"started"`

	// FreshnessSeconds is how old its oldest relay was then. It is absent while one was never filled.
	// +optional
	FreshnessSeconds *int64 `json:"freshnessSeconds,omitempty"`

	// UplinkDownBytes are those from the cloud.
	UplinkDownBytes int64 `json:"uplinkDownBytes"`

	// UplinkUpBytes are those to the cloud.
	UplinkUpBytes int64 `json:"uplinkUpBytes"`

	// FeedBytes are those of both by which the hub fetched what the pool shares.
	FeedBytes int64 `json:"feedBytes"`

	// ServedBytes are those that clients of the node got from relays.
	ServedBytes int64 `json:"servedBytes"`

	// Images are bytes of images on the node. It is absent while there were none, as where the hub is no mirror.
	// +optional
	Images *HubImages `json:"images,omitempty"`

	// FailingEdges is how many ways inside the pool the hub found to fail. It is absent while there are none.
	// +optional
	FailingEdges int32 `json:"failingEdges,omitempty"`

	// Edges are the first of them.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	Edges []HubEdge `json:"edges,omitempty"`

	// Reads is what clients of the node read of the whole cluster. It is absent while the hub has told nothing of it.
	// +optional
	Reads *Reads `json:"reads,omitempty"`
}

// HubImages are bytes of images on a node, since its hub was started.
type HubImages struct {
	// PulledBytes are those that the node pulled from registries, over the uplink.
	PulledBytes int64 `json:"pulledBytes"`

	// SavedBytes are those that it read from other nodes of the pool instead.
	SavedBytes int64 `json:"savedBytes"`

	// ServedBytes are those that other nodes of the pool read from it.
	ServedBytes int64 `json:"servedBytes"`
}

// Reads is what clients of a node read of the whole cluster, as its hub told last. Resources are named as
// resource.version.group. Bytes are those of the 24 hours before, or since the hub was started.
type Reads struct {
	// Told is when it told that.
	Told metav1.Time `json:"told"`

	// Passed are resources that the pool does not share, and whose lists and watches the cloud answered one by one: those
	// with the most bytes.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Passed []PassedReads `json:"passed,omitempty"`

	// PassedRestBytes are those of all other resources.
	// +optional
	PassedRestBytes int64 `json:"passedRestBytes,omitempty"`

	// Unread are resources that the pool shares, and that no client of the node has read for a day.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Unread []string `json:"unread,omitempty"`
}

// PassedReads are the reads of one resource that the cloud answered.
type PassedReads struct {
	// Resource is its name.
	Resource string `json:"resource"`

	// Bytes of the answers, as they came over the link.
	Bytes int64 `json:"bytes"`
}

// Replica is one replica of a coordinator, or all of it.
type Replica struct {
	// Node that runs it.
	Node string `json:"node"`

	// Server is where it is asked.
	Server string `json:"server"`

	// Placement names this stay of it on the node. The data of another one is ignored.
	Placement string `json:"placement"`

	// Joins reports whether it came to others that there were.
	// +optional
	Joins bool `json:"joins,omitempty"`

	// Ready reports whether it serves, by the word of its kubelet.
	Ready bool `json:"ready"`
}

// Pool is what Weir has of a pool beside the NodePool of the same name.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,path=pools,categories=weir
// +kubebuilder:subresource:status
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:name="Ready",type="string",JSONPath=".status.conditions[?(@.type=='Ready')].status"
// +kubebuilder:printcolumn:name="Mode",type="string",JSONPath=".status.mode"
// +kubebuilder:printcolumn:name="Members",type="integer",JSONPath=".status.members"
// +kubebuilder:printcolumn:name="Heard",type="integer",JSONPath=".status.heard"
// +kubebuilder:printcolumn:name="CutOff",type="integer",JSONPath=".status.cutOff"
// +kubebuilder:printcolumn:name="Leader",type="string",JSONPath=".status.leader"
// +kubebuilder:printcolumn:name="Freshness",type="integer",JSONPath=".status.freshnessSeconds"
// +kubebuilder:printcolumn:name="Saved",type="integer",JSONPath=".status.savedBytes"
// +kubebuilder:printcolumn:name="Silent",type="date",JSONPath=".status.silentSince"
// +kubebuilder:printcolumn:name="Why",type="string",JSONPath=".status.conditions[?(@.type=='Ready')].reason",priority=1
// +kubebuilder:printcolumn:name="Coordinators",type="string",JSONPath=".status.coordinators",priority=1
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp"
type Pool struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +kubebuilder:default={}
	Spec   Spec   `json:"spec,omitempty"`
	Status Status `json:"status,omitempty"`
}

// List is a list of Pools.
//
// +kubebuilder:object:root=true
type List struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Pool `json:"items"`
}
