// Package kubelet runs the Pods of a simulated node as processes: a small agent in the place of the kubelet, for Pods
// on the network of their host with one container and directories of the host.
//
// It reads the Pods of its node through the node's hub, as a kubelet does, with the kubelet's certificate and name. So
// the hub keeps them on its disk, and gives them while the cloud is away. What it makes of a Pod:
//
//	image            a command of this machine (Config.Commands)
//	hostPath         a folder of the node's (Config.Root), put into the arguments in the place of the path
//	hostNetwork      --bind-address with the address of the node
//	readinessProbe   asked at that address: an httpGet over TLS, or a tcpSocket
//	restartPolicy    a process that ends is started again
//	another image    the process is stopped and restarted
//	deletion         SIGTERM, and the Pod goes when the process has ended
//
// # Goroutines
//
// Start starts them. PowerOff and Close end them, with the processes.
package kubelet
