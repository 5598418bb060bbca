// Package config loads the configuration of podd from files and flags, in the kubelet's order of
// precedence:
//
//	v1beta1 defaults < --config file < --config-dir/*.conf < flags
//
// Each file and the command line become a layer: a JSON tree with the position of each field.
// The layers are merged as JSON merge patches (RFC 7386), in which a list replaces a list and
// null deletes a value. The result is decoded, checked and converted to a Config:
//
//	file ─── parseLayer ──┐
//	*.conf ─ parseLayer ──┼─▶ mergedTree ─▶ KubeletConfiguration ─▶ checker ─▶ resolver ─▶ Config
//	flags ── Flags.layer ─┘
//
// No setting of the kubelet is ignored silently. A field, flag or feature gate that podd does not
// support is an error if pods would run differently with it. Otherwise it is ignored with a warning.
// All settings that are ignored for the same reason are in one warning. All errors are reported
// together, each with its file and line or its flag.
//
// Only Load and ReadHostFacts read files. The package has no state.
package config
