// Package offline contains the verbs that need no running podd: validate, plan, volume and
// completion. If podd is running, plan and volume use its configuration for all settings that the
// command line does not set.
package offline
