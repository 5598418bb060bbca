// Package config combines everything that configures podd into a validated Config, in the
// kubelet's order of precedence:
//
//	v1beta1 defaults < --config file < --config-dir/*.conf < flags
//
// Every file and the command line become a layer: a JSON tree with the position of each
// field. The layers are merged as JSON merge patches (RFC 7386: lists replace, null
// deletes). The result is decoded, checked and converted to a Config:
//
//	file ─── parseLayer ──┐
//	*.conf ─ parseLayer ──┼─▶ merged ─▶ KubeletConfiguration ─▶ checker ─▶ resolver ─▶ Config
//	flags ── Flags.layer ─┘
//
// Fields of Kubernetes 1.34 that podd does not support yet are ignored with one warning. If
// ignoring a field would run pods in another way than requested, it is an error. All errors
// are reported together, each with its file and line or its flag. evictionHard determines the
// pressure conditions and reduces the allocatable resources, but no pod is evicted for it.
// evictionSoft has no effect.
//
// Only Load and ThisMachine read files. The package has no state.
package config
