// Package host reads the machine on which a hub is installed, and makes the texts that the installer writes there. It
// starts no goroutine, and writes no file.
//
//	Unit       how systemd starts a kubelet; the drop-in that gives the kubelet another kubeconfig
//	HubUnit    the unit of the hub
//	Pulls      how the container runtime pulls images: whether it asks a mirror first, and in which file it finds it
//	Process    which processes are connected to an address
//
// # Units
//
// It goes by systemd's rules: comments, lines that go on after a backslash, quotes and escapes, several assignments in
// one Environment=, an empty one that forgets those before, EnvironmentFile= with a minus or a pattern, whose variables
// win over Environment=, and variables and specifiers in the command (systemd.exec(5), systemd.service(5)). It reads
// the files of EnvironmentFile=.
//
// # Pulls
//
// It goes by containerd's rules, of versions 1.x to 2.4:
//
//   - Files are read in the order of their imports; of two the later one counts. 1.x replaces a plugin's whole section,
//     2.x merges sections. Keys of the plugin of configuration version 2 count in 2.x, too.
//   - config_path is one directory or a list. From 2.2 on it is /etc/containerd/certs.d:/etc/docker/certs.d where
//     nothing is set.
//   - Of each directory the one of the registry counts, else _default; of the list the first that has one of them.
//   - From 2.1 on the transfer service pulls. It takes a list for one directory, which is not there: it then asks no
//     mirror. use_local_image_pull, and settings that the transfer service does not have, make containerd pull without
//     it.
//   - hosts.toml is read for each pull, so a new one counts at once. The configuration is read at containerd's start.
//
// # Connections
//
// Those of TCP, in all network namespaces: so processes of pods are found, too. Connected reads /proc, and nothing
// else: net/tcp and net/tcp6 of one process of each namespace have the sockets, fd of each process has whose they are.
// A process without root sees its own processes only, which is an error. Processes that end meanwhile are left out. A
// process that not even this root may look at has no name here.
package host
