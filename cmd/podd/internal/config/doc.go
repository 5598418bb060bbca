// Package config combines everything that configures podd into a validated Config, in the
// kubelet's order of precedence:
//
//	v1beta1 defaults < --config file < --config-dir/*.conf < flags
//
// Every file and the command line become a layer: a JSON tree with the position of each
// field. The layers are merged as JSON merge patches (RFC 7386: lists replace, null
// deletes). The result is decoded, checked and converted to a Config:
//
//	file ── readLayer ──┐
//	*.conf ─ readLayer ─┼─▶ merge ─▶ KubeletConfiguration ─▶ check ─▶ Config
//	flags ── Flags.layer┘              with origins          unserved
//
// Fields of Kubernetes 1.34 that podd does not serve yet are named in one warning. A field
// is rejected if pods would run incorrectly without it. All errors are reported together,
// each with its file and line or its flag. evictionHard determines the pressure conditions
// and reduces the allocatable resources, but no pod is evicted for it. evictionSoft has no
// effect.
//
// Load is the only function that reads files. The package has no state.
package config
