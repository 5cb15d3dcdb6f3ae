// Package pki lists every certificate of Weir: its holder, its contents, its life, and the authority that may sign it.
//
// Identities is the table, as data. All that make or judge certificates read it: weir-manager, which signs requests;
// `weir pki`; the testbed. So there is one rule for each certificate.
//
//   - Identity.Request makes a request (CSR) for a key, Identity.CheckRequest judges one.
//   - Authority signs. Authority.Answer signs a request only if it agrees with the table.
//   - Identity.CheckCertificate judges what was signed, and Identity.CheckPair what its holder got for its own key.
//   - Succession is an authority that is being replaced: the old and the new one are both trusted for a while.
//   - Renewal says when a certificate is due: at 70 to 80 % of its life.
//
// What does not agree is a MismatchError: one field, the value that was found, what is allowed.
//
// Keys are ECDSA. An authority of a pool names its pool (weir:pool:<pool>) and signs no other authority (path length
// 0).
//
// The package starts no goroutine and has no state. It reads no clock but one that it is given.
package pki
