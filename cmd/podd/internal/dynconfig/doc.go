// Package dynconfig changes podd's configuration while podd runs. It implements --dynamic-config-dir,
// with which kubelets 1.11 to 1.23 changed their configuration.
//
//	files of --config, --config-dir ─┐
//	                                 ├─▶ candidate ─▶ trial ─▶ last known good
//	ConfigMap of the Node ───────────┘       │          │             │
//	                                      invalid   unhealthy         │ podd returns to it
//	                                         └──▶ rejected ◀──────────┘
//
// The candidate is the configuration that the user has assigned: the content of the configuration
// files. In a cluster, the annotation podd/config-source of the Node can name a ConfigMap, whose content
// replaces that of --config. A valid candidate is stored as a checkpoint and used for a trial period.
// podd stops its parts and starts them with the new configuration, in the same process, so the pods keep
// running as after a restart of podd. The candidate is rejected in these cases:
//
//   - It is invalid.
//   - podd stops with an error during the trial, or does not start.
//   - More than maxStarts processes of podd have started with it, and none has stopped in an orderly way or
//     has run for the duration of a trial.
//   - During two trials, the container runtime or the API server is unreachable, but was reachable before,
//     and responds to the last known good configuration soon after. If it does not respond soon, the
//     candidate is not the cause. Between these trials, podd waits until the runtime and the API server
//     respond to the last known good configuration. A candidate has at most maxLosses trials.
//
// If a candidate on trial is rejected, podd returns to the last known good configuration. If there is none,
// the trial continues, or podd stops. An invalid candidate changes nothing. A rejected candidate is tried
// again only if its content or podd's version has changed. A candidate that cannot be read is not rejected,
// because its directory may be mounted later.
//
// State contains the decisions, as pure functions. A manager owns the State and the directory. A Link
// connects the manager with the running parts of podd.
package dynconfig
