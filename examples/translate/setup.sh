# SPDX-License-Identifier: BSL-1.0
#
# Sourced by examples/run.sh: messages in other languages, which minimal systems leave out.
if [[ " $* " != *" --"@(catalogues|help|plan)* ]]; then
  catalogues=(/usr/share/locale/*/LC_MESSAGES/*.mo)
  if ((${#catalogues[@]} < 200)); then
    unpack "$root/build/catalogues" bash binutils-common coreutils diffutils findutils gettext grep iso-codes make sed tar util-linux-locales wget
    set -- --catalogues "$root/build/catalogues/usr/share/locale/*/LC_MESSAGES/*.mo" "$@"
  fi
fi
