// Package credential has the credentials of a node: the certificates that it requests and renews (Keeper), and what its
// kubelet's kubeconfig names (Source).
//
// A Source authenticates a node to the cloud where the kubelet has no client certificate. It uses the token
// that the kubelet's kubeconfig names: as text (user.token), in a file that is renewed (user.tokenFile), or from a
// program (user.exec), as clouds with identities of their own for nodes do.
//
// client-go runs such programs too, but waits for one that hangs, and lets all requests wait with it. Here a program
// has a time, its answer has a size, and it runs at most once at a time; after a failure it rests, longer each time,
// and requests meanwhile fail at once with what went wrong. No error holds a token.
//
// A Source starts no goroutine that outlives a call but the one that waits for a program; that ends with the program,
// which has Timeout.
//
// # Certificates
//
// A Keeper holds one certificate. It makes the key itself, and the key never leaves the node.
//
// A Keeper asks kube-apiserver by a CertificateSigningRequest, with any credential that may create and get them.
// weir-manager approves and signs (package manager/certificates). The Keeper checks what it got by the table of package
// pki, keeps it, and hands it out by Get. Handshakes after that show the new certificate. Connections that are open
// stay as they are.
//
// # When a certificate is asked for
//
// A Keeper asks as soon as it holds nothing, when pki.Renewal says so (at 70 to 80 % of a life), and when no authority
// of KeeperConfig.Trusted vouches for what it holds, or KeeperConfig.Refused refuses it. It asks only while it is
// wanted: see Want. What it holds is handed out to its end and beyond: whoever verifies it judges that.
//
// What fails is tried again after a pause, which doubles: about half a second at first, about five minutes at most, and
// no more than a twentieth of a life. A request that nobody has answered yet is read again in the same way. Each
// failure is counted by its reason, and told in the log once. After a denial another request is made, with another key,
// in about ten seconds at the earliest: it may be that somebody labels the Node.
//
// # Certificates on the disk
//
//   - <dir>/<kind>.pem holds key and certificate, in one file. It is replaced in one step.
//   - <dir>/<kind>.before.pem is the one before. It counts if the first cannot be used: half of it was written by
//     somebody else, or the disk lost it.
//   - <dir>/<kind>.asked.pem is the key of a request that is under way. The name of the request follows from the key.
//     So a restart, or an answer that was lost, leads to the same request: a bootstrap token counts only once.
//
// Only the owner of the process can read them. A coordinator, which has no way to the cloud, has a Keeper in the hub of
// its node, and reads its file (KeptFile): both run as the same user. A disk that takes nothing is told and counted,
// and the certificate is used all the same.
//
// OpenKeeper starts no goroutine. Keeper.Run blocks until its context ends.
package credential
