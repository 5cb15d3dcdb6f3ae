// Package audit compares the rights of the parts of Weir at kube-apiserver with the requests that they made. A Grant is
// one right that a role of the manifests gives. The audit log of a real kube-apiserver names, for each request, the
// role that allowed it, and each request that was refused. A grant without a request is too much, and a refused request
// shows a missing grant.
package audit
