// Package nodejob is about the Jobs of Weir that run on a node. Package manager/jobs runs them. It starts no goroutine.
//
// Jobs that join a node to its pool, or let it leave: how far a Job is, and why it failed.
//
// Jobs that bring an image to a node of a pool ahead of a roll-out (Preload): their form, the hours in which they run,
// and which of them run now. The command weir images pull makes them, and weir-manager lets them run.
//
// # What a Job that brings an image runs
//
// Its container has the image, and the program of the hub from the disk of the node in the place of the image's own: it
// prints its version and ends. So the kubelet pulls the image, with its secrets and its rules. Nothing of the image
// runs, and a Pod that succeeded says that the image is there. An image volume would do without a container of the
// image, but kubelets before v1.35 have it switched off, and containerd before v2.1 does not know it.
//
// The kubelet does not break off a pull when its Pod is deleted. So a Job has one image and one node: what is suspended
// at the end of the hours is all that has not begun.
package nodejob
