// Package offline contains the verbs that need no running podd: check, validate, plan,
// volume and completion. If podd is running, check, plan and volume use its configuration for all
// settings that the command line does not set.
package offline
