// Package enrol requests the certificates of a node and renews them. A Keeper holds one certificate. It makes the key
// itself, and the key never leaves the node.
//
// A Keeper asks kube-apiserver by a CertificateSigningRequest, with any credential that may create and get them.
// weir-manager approves and signs (package manager/certificates). The Keeper checks what it got by the table of package
// pki, keeps it, and hands it out by Get. Handshakes after that show the new certificate. Connections that are open
// stay as they are.
//
// # When
//
// A Keeper asks as soon as it holds nothing, when pki.Renewal says so (at 70 to 80 % of a life), and when no authority
// of Config.Trusted vouches for what it holds, or Config.Refused refuses it. It asks only while it is wanted: see Want.
// What it holds is handed out to its end and beyond: whoever verifies it judges that.
//
// What fails is tried again after a pause, which doubles: about half a second at first, about five minutes at most, and
// no more than a twentieth of a life. A request that nobody has answered yet is read again in the same way. Each
// failure is counted by its reason, and told in the log once. After a denial another request is made, with another key,
// in about ten seconds at the earliest: it may be that somebody labels the Node.
//
// # On the disk
//
//   - <dir>/<kind>.pem holds key and certificate, in one file. It is replaced in one step.
//   - <dir>/<kind>.before.pem is the one before. It counts if the first cannot be used: half of it was written by
//     somebody else, or the disk lost it.
//   - <dir>/<kind>.asked.pem is the key of a request that is under way. The name of the request follows from the key.
//     So a restart, or an answer that was lost, leads to the same request: a bootstrap token counts only once.
//
// Only the owner of the process can read them. A coordinator, which has no way to the cloud, has a Keeper in the hub of
// its node, and reads its file (File): both run as the same user. A disk that takes nothing is told and counted, and
// the certificate is used all the same.
//
// # Goroutines
//
// Open starts none. Run blocks until its context ends.
package enrol
