# Draws paper3.svg and paper3.png from the tables beside it: gnuplot paper3.gp
reset
set encoding utf8
set datafile separator comma
set datafile columnheaders
set datafile missing NaN
blue = "#0072B2"; vermillion = "#D55E00"; green = "#009E73"; purple = "#CC79A7"
orange = "#E69F00"; sky = "#56B4E9"; yellow = "#F0E442"; black = "#000000"; grey = "#777777"
set linetype 1 linecolor rgb blue linewidth 2 pointtype 7 pointsize 0.6
set linetype 2 linecolor rgb vermillion linewidth 2 pointtype 5 pointsize 0.6
set linetype 3 linecolor rgb green linewidth 2 pointtype 9 pointsize 0.8
set linetype 4 linecolor rgb purple linewidth 2 pointtype 13 pointsize 0.8
set linetype 5 linecolor rgb orange linewidth 2 pointtype 11 pointsize 0.8
set linetype 6 linecolor rgb sky linewidth 2 pointtype 4 pointsize 0.6
set linetype 7 linecolor rgb black linewidth 2 pointtype 6 pointsize 0.6
set linetype cycle 7
set border 3 linecolor rgb "#444444" linewidth 1
set tics nomirror out scale 0.5 textcolor rgb "#222222"
set grid xtics ytics linetype 1 linecolor rgb "#E3E3E3" linewidth 0.75
set format "%h"
set key at graph 0, graph 1.03 left bottom horizontal Left reverse maxcols 5 width -1 samplen 2.6 font ",12" textcolor rgb "#222222"
set style fill solid 1.0 noborder

title = 'Activation gradients of ssd, before and after a shift by S'
draw_title = 'set label title at graph 0, screen 0.965 left noenhanced font ",15" textcolor rgb "#222222"'
do for [kind in "svg png"] {
  unset label; unset arrow; unset object
  if (kind eq "svg") {
    set terminal svg size 800, 860 font "sans-serif,13" background "#ffffff"
    set xtics offset 0, 0.38; set ytics offset 0.6, 0; set xlabel offset 0, 0.95; set ylabel offset 0.9, 0; set key spacing 1
  } else {
    # In pixels as the SVG: a point is 4/3 of a pixel, and of pixels there are twice as many.
    set terminal pngcairo size 1600, 1720 font "sans-serif,13" fontscale 2 * 3/4. linewidth 2 pointscale 2.7 dashlength 0.5 background "#ffffff"
    set xtics offset 0, 0.2; set ytics offset 0, 0; set xlabel offset 0, 0.42; set ylabel offset 0, 0; set key spacing 1.2
  }
  set tmargin at screen 0.9000; set bmargin at screen 0.0674
  set output 'paper3.'.kind
  eval draw_title

set multiplot
set boxwidth 0.9
unset key
unset object
unset arrow
unset label
eval draw_title
set bmargin at screen 0.7117
set tmargin at screen 0.8700
set lmargin at screen 0.09
set rmargin at screen 0.17
set grid noxtics
set xrange [-1:1]
set yrange [0:120]
set xtics ("exact 0" 0)
set ytics 0, 25, 100
set xlabel ""
set ylabel "share of all values, %"
set label "72.2 %" at 0, 72.18303720744417 center offset 0,0.6
set label "S = 1: 23.0 % more become zero, 4.8 % are left" at graph 0, graph 1.08 left font ",13"
plot "paper3.csv" using ((column('scale_log2') == 0 && strcol('lower_log2') eq 'zero') ? (0) : NaN):(column('share_percent')) with boxes linecolor rgb grey notitle
unset label
set lmargin at screen 0.255
set rmargin at screen 0.98
set grid xtics
set xrange [-40:16]
set yrange [0:12.929801698970994]
set xtics 4
set ytics autofreq
set ylabel ""
set xlabel "log₂ of |gradient|"
set offsets 0, 0, graph 0.2, 0
set object rectangle from first -40, graph 0 to first -25, graph 1 behind fillcolor rgb vermillion fillstyle transparent solid 0.10 noborder
set label 'zero in FP16' at first -32.5, graph 0.955 center textcolor rgb "#444444" font ',12'
set object rectangle from first -25, graph 0 to first -14, graph 1 behind fillcolor rgb orange fillstyle transparent solid 0.10 noborder
set label 'subnormal' at first -19.5, graph 0.955 center textcolor rgb "#444444" font ',12'
set object rectangle from first -14, graph 0 to first 16, graph 1 behind fillcolor rgb green fillstyle transparent solid 0.10 noborder
set label 'FP16 normal range' at first 1, graph 0.955 center textcolor rgb "#444444" font ',12'
set offsets 0, 0, 0, 0
plot "paper3.csv" using (column('scale_log2') == 0 && strcol('lower_log2') ne 'zero' ? (column('lower_log2') + column('upper_log2')) / 2 : NaN):(column('share_percent') / 2):(column('lower_log2') + 0.06):(column('upper_log2') - 0.06):(0):(column('share_percent')) with boxxyerror linecolor rgb blue notitle
unset object
unset arrow
unset label
set bmargin at screen 0.3983
set tmargin at screen 0.5567
set lmargin at screen 0.09
set rmargin at screen 0.17
set grid noxtics
set xrange [-1:1]
set yrange [0:120]
set xtics ("exact 0" 0)
set ytics 0, 25, 100
set xlabel ""
set ylabel "share of all values, %"
set label "72.2 %" at 0, 72.18303720744417 center offset 0,0.6
set label "S = 8: 8.4 % more become zero, 19.4 % are left" at graph 0, graph 1.08 left font ",13"
plot "paper3.csv" using ((column('scale_log2') == 3 && strcol('lower_log2') eq 'zero') ? (0) : NaN):(column('share_percent')) with boxes linecolor rgb grey notitle
unset label
set lmargin at screen 0.255
set rmargin at screen 0.98
set grid xtics
set xrange [-40:16]
set yrange [0:12.929801698970994]
set xtics 4
set ytics autofreq
set ylabel ""
set xlabel "log₂ of |gradient| times S"
set offsets 0, 0, graph 0.2, 0
set object rectangle from first -40, graph 0 to first -25, graph 1 behind fillcolor rgb vermillion fillstyle transparent solid 0.10 noborder
set label 'zero in FP16' at first -32.5, graph 0.955 center textcolor rgb "#444444" font ',12'
set object rectangle from first -25, graph 0 to first -14, graph 1 behind fillcolor rgb orange fillstyle transparent solid 0.10 noborder
set label 'subnormal' at first -19.5, graph 0.955 center textcolor rgb "#444444" font ',12'
set object rectangle from first -14, graph 0 to first 16, graph 1 behind fillcolor rgb green fillstyle transparent solid 0.10 noborder
set label 'FP16 normal range' at first 1, graph 0.955 center textcolor rgb "#444444" font ',12'
set offsets 0, 0, 0, 0
plot "paper3.csv" using (column('scale_log2') == 3 && strcol('lower_log2') ne 'zero' ? (column('lower_log2') + column('upper_log2')) / 2 : NaN):(column('share_percent') / 2):(column('lower_log2') + 0.06):(column('upper_log2') - 0.06):(0):(column('share_percent')) with boxxyerror linecolor rgb blue notitle
unset object
unset arrow
unset label
set bmargin at screen 0.0850
set tmargin at screen 0.2433
set lmargin at screen 0.09
set rmargin at screen 0.17
set grid noxtics
set xrange [-1:1]
set yrange [0:120]
set xtics ("exact 0" 0)
set ytics 0, 25, 100
set xlabel ""
set ylabel "share of all values, %"
set label "72.2 %" at 0, 72.18303720744417 center offset 0,0.6
set label "S = 2^{15}: 0.004 % more become zero, 27.8 % are left" at graph 0, graph 1.08 left font ",13"
plot "paper3.csv" using ((column('scale_log2') == 15 && strcol('lower_log2') eq 'zero') ? (0) : NaN):(column('share_percent')) with boxes linecolor rgb grey notitle
unset label
set lmargin at screen 0.255
set rmargin at screen 0.98
set grid xtics
set xrange [-40:16]
set yrange [0:12.929801698970994]
set xtics 4
set ytics autofreq
set ylabel ""
set xlabel "log₂ of |gradient| times S"
set offsets 0, 0, graph 0.2, 0
set object rectangle from first -40, graph 0 to first -25, graph 1 behind fillcolor rgb vermillion fillstyle transparent solid 0.10 noborder
set label 'zero in FP16' at first -32.5, graph 0.955 center textcolor rgb "#444444" font ',12'
set object rectangle from first -25, graph 0 to first -14, graph 1 behind fillcolor rgb orange fillstyle transparent solid 0.10 noborder
set label 'subnormal' at first -19.5, graph 0.955 center textcolor rgb "#444444" font ',12'
set object rectangle from first -14, graph 0 to first 16, graph 1 behind fillcolor rgb green fillstyle transparent solid 0.10 noborder
set label 'FP16 normal range' at first 1, graph 0.955 center textcolor rgb "#444444" font ',12'
set offsets 0, 0, 0, 0
plot "paper3.csv" using (column('scale_log2') == 15 && strcol('lower_log2') ne 'zero' ? (column('lower_log2') + column('upper_log2')) / 2 : NaN):(column('share_percent') / 2):(column('lower_log2') + 0.06):(column('upper_log2') - 0.06):(0):(column('share_percent')) with boxxyerror linecolor rgb blue notitle
unset multiplot

}
unset output
