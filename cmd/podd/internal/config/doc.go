// Package config makes one checked Config out of everything that configures
// podd, in the order of the kubelet:
//
//	v1beta1 defaults < --config file < --config-dir/*.conf < flags
//
// Every file and the command line become a layer: a JSON tree with the place
// each field was written. The layers are merged as JSON merge patches (RFC
// 7386: lists replace, null deletes), then decoded, checked and turned into a
// Config, once:
//
//	file ── readLayer ──┐
//	*.conf ─ readLayer ─┼─▶ merge ─▶ KubeletConfiguration ─▶ check ─▶ Config
//	flags ── Flags.layer┘              with origins          unserved
//
// A field that Kubernetes 1.34 knows and podd does not serve yet is named in
// one warning, or refused where ignoring it would run pods wrongly. All errors
// are found at once and each names its file and line or its flag. evictionHard is
// served as far as it says when the node is under pressure and what of it is
// allocatable; no pod ends for it, and evictionSoft has no effect.
//
// Load is the only function that reads files; nothing here keeps state.
package config
