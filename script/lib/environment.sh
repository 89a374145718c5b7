# shellcheck shell=sh
# What the scripts take for granted and a bare login, cron or container may not
# give: the folders of administrators' programs, and a home for Go's caches.
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin
HOME=${HOME:-$(getent passwd "$(id -u)" | cut -d: -f6)}
export PATH HOME
