// Package audit compares what the parts of Weir may do at kube-apiserver with what they did. A Grant is one thing that
// a role of the manifests allows. The audit log of a real kube-apiserver names for each request the role that allowed
// it, and each request that was refused. A grant that nothing uses is too much, and a refusal tells of one that is
// missing.
package audit
