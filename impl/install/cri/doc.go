// Package cri reads how the container runtime of a machine pulls images: whether containerd asks a mirror first, and in
// which file it finds that mirror.
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
// It starts no goroutine, and writes nothing.
package cri
