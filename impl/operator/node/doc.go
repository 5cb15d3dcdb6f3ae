// Package node is the command `weir node`. It directs the kubelet of this machine to a hub, and back (package install).
// It also revokes Nodes of the cluster that are lost or stolen, and restores Nodes that were deleted by mistake
// (package manager/revocation).
//
// # In a container
//
// An Errand lets a container use the systemd of its machine, to direct the kubelet to a hub or back to the cloud. It is
// the inner part of the Jobs of package manager/jobs.
//
// A join restarts the kubelet, below whose Pods the container runs, and anyone who drains, evicts or deletes would end
// it at any moment. So the container does nothing to the node itself. It goes to the root of the machine (/proc/1/root,
// which needs hostPID and privileges), copies its programs to a folder there, and has systemd start them as a transient
// unit of a fixed name. Then it waits, and shows what the unit says. A container that is killed leaves the work going
// on, and the next one waits for its end before it begins. There are never two units, because there is one name.
//
// The unit remains when it has ended, so how it ended can be asked. The process that saw the end takes away the unit
// and the folder: nothing of the errand is left on the machine. Of a unit that has ended before, nobody knows for whom
// it ran. So the work is done again, which changes nothing if it was done well.
//
// The folder is in /var/lib: /run may forbid programs, and /usr may be read-only.
//
// The package starts no goroutine.
package node
