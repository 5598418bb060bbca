#!/bin/sh
# Root lacks CAP_SYS_RESOURCE on this host. Therefore root can neither lower an oom_score_adj nor
# give the capability to a container. containerd respects this with restrict_oom_score_adj.
# CRI-O does not, so this script changes the spec that CRI-O passes to runc.
read -r own < /proc/self/oom_score_adj
option=
for arg; do
	case $option in
	--bundle) spec=$arg/config.json ;;
	--process) spec=$arg ;;
	*) spec= ;;
	esac
	[ -z "$spec" ] || sed -i "s/\"oomScoreAdj\": *-[0-9]*/\"oomScoreAdj\":$own/
		s/\"CAP_SYS_RESOURCE\",//g
		s/,\"CAP_SYS_RESOURCE\"//g" "$spec"
	option=$arg
done
exec "{{.Runc}}" "$@"
