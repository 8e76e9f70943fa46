# SPDX-License-Identifier: BSL-1.0
#
# Sourced by examples/run.sh: what images needs beside a compiler. Families of fonts, 15 MB, where there are fewer than a hundred files of
# fonts; other folders than the system's are named by --fonts.
need libfreetype-dev
if [[ " $* " != *" --fonts"* && " $* " != *" --mnist"* && " $* " != *" --cifar"* ]] &&
  (($(find /usr/share/fonts /usr/local/share/fonts "$HOME/.fonts" "$HOME/.local/share/fonts" -iname '*.[to]tf' 2>/dev/null | wc -l) < 100)); then
  need fonts-{dejavu,freefont-ttf,lato,linuxlibertine,open-sans,roboto-unhinted,ebgaramond,cantarell,oldstandard,sil-gentium,go,hack} \
    fonts-adf-{accanthis,baskervald,berenis,gillius,ikarius,irianis,libris,mekanus,oldania,romande,solothurn,switzera,tribun,universalis,verana} \
    fonts-{anonymous-pro,averia-sans-gwf,averia-serif-gwf,beteckna,cabin,comfortaa,dosis,fantasque-sans,fanwood,firacode,gfs-didot} \
    fonts-{goudybookletter,inconsolata,isabella,jetbrains-mono,jura,karla,league-spartan,levien-museum,lobster,lobstertwo,monofur} \
    fonts-{play,prociono,quicksand,vollkorn,yanone-kaffeesatz}
fi
