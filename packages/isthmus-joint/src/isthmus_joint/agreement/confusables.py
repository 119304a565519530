"""Characters, and the letters or digits that look the same (UTS #39, prototypes).

Generated from confusables.txt, version 13.0.0, by packaging/write_confusables.py: all characters
whose prototype consists of Latin, Greek or Cyrillic letters and digits, except those that the
compatibility decomposition of Unicode maps already. © Unicode, Inc.; the data are used under
https://www.unicode.org/license.txt
"""

from __future__ import annotations

LETTERS = (
    "ᔯᑾᒀᑺᒘᒶᑶᑗᐺᐼᒮᐎƁƊƤƬƳ⨧ꝚƧϨꙄᒿꛯƻ𝈆ꞫȜƷꝪⳌЗӠ𖼻𑣊ҘᏎ𑢯ᔰƼ𑢻ⳒбᏮ𑣕𝈒𐓒𑣆ଃ৪੪𞣋ȣȢ𐌚੧୨৭൭ꝮⳊ𑣌𑢬𑣖⍺ɑαаΑАᎪᗅꓮ𖽀𐊠⍶ꭺ∀𝈗ᗄꓯ𐐟ƄЬᏏ"
    "ᑲᖯꞴΒВᏴᗷꓐ𐊂𐊡𐌁ɓᑳƃƂБƀҍҌѣѢᑿᒁᒈвᏼᴄⲥсꮯ𐐽🝌𑣲𑣩ⲤСᏟꓚ𐊢𐌂𐐕𐔜¢ȼ₡🅮ҫҪƇ⋴ɛεⲉєԑꮛ𑣎𐐩€ⲈЄ⍷ͽϿԁᏧᑯꓒᎠᗞᗪꓓɗɖƌđĐÐƉ₫ꝺᑻᒇꭰ⸹"
    "δծᕷ℮ꬲеҽ⋿ΕЕⴹᎬꓰ𑢦𑢮𐊆ɇɆҿꭼəә∃ⴺꓱɚӘ𝈡ԐᏋ𖼭𐐁ᴈзҙ𐑂ꞝ𐐪ꬵꞙẝք𝈓ꞘϜᖴꓝ𑣂𑢢𐊇𐊥𐔥ƒƑᵮ𝈰ᖷɡᶃƍցԌᏀᏳꓖɠǥǤƓԍꮐᏻһհᏂΗⲎНᎻᕼꓧ𐋏ɦꚕᏲ"
    "ⱧҢħћĦӉӇнꮋңӊӈԊꮀͰᎨᎰꚱꞕ⍳ıɪɩιіꙇӏꭵᎥ𑣃⍸ɨᵻᵼϳјꞲͿЈᎫᒍꓙɉɈᒙյꭻΚⲔКᏦᛕꓗ𐔘ƙⱩҚ₭ꝀҞƘ׀|∣⏽1١۱𐌠𞣇IƖǀΙⲒІӀוןاߊⵏᛁꓲ𖼨"
    "𐊊𐌉𝈪ⳐᏞᒪꓡ𖼖𑢣𑢲𐐛𐔦łŁɭƗƚɫٳᒷױⳑꮮ𐑃ΜϺⲘМᎷᗰᛖꓟ𐊰𐌑ӍոռΝⲚꓠ𐔓𐆎ɳƞηƝᵰͷи𐑍ంಂംං०੦૦௦౦೦൦๐໐၀٥۵ᴏᴑꬽοσⲟоჿօסهھہەഠဝ𐓪𑣈𑣗"
    "𐐬0߀০୦〇𑓐𑣠ΟⲞОՕⵔዐଠ𐓂ꓳ𑢵𐊒𐊫𐐄𐔖ۿøꬾØⵁɵꝋөѳꮎꮻ⊖⊝⍬𝈚🜔ƟꝊθΘӨѲⴱᎾᏫꭴᎤတↄᴐͻ𐑋ↃϽꓛ𐐣ꬿ𐐿⍴ρⲣрΡⲢРᏢᑭꓑ𐊕ƥᵽᑷᒆᴩꮲφⲫфԛգզⵕʠ"
    "ᶐᴋκⲕкꮶқҟꭇꭈᴦⲅгꮁ𝈖ƦᎡᏒ𐒴ᖇꓣ𖼵ɽɼɍғᵲґꭱꮢяᵳ℩ꜱƽѕꮪ𑣁𐑈ЅՏᏕᏚꓢ𖼺𐊖𐐠ʂᵴꞵβᏰ∫ꭍ∑Σⵉ⊤⟙🝨ΤⲦТᎢꓔ𖼊𑢼𐊗𐊱𐌕ƭ⍡ȾƮҬ₮ŧŦᵵႠτтꭲҭᎿ"
    "ꞟᴜꭎꭒʋυս𐓶𑣘∪⋃Սሀ𐓎ᑌꓴ𖽂𑢸ᵾꮜɄᏌᑘᑧպሣ℧ᘮᘴᵿ∨⋁ᴠνѵט𑜆ꮩ𑣀𝈍٧۷ѴⴸᏙᐯꛟꓦ𖼈𑢠𐔝𐆗ᐻ🜈ᴧ𐓘٨۸ΛЛⴷ𐒰ᐱꛎꓥ𖼽𐊍Ӆᐽɯᴡѡԝա𑜊𑜎𑜏ꮃ𑣯𑣦ԜᎳᏔꓪѽ"
    "𑓅₩ꝡᴍмꮇӎ᙮×⤫⤬⨯хᕁᕽ᙭╳𐌢𑣬ꞳΧⲬХⵝᚷꓫ𐊐𐊴𐌗𐔧⨰Ҳ𐆖ɣᶌʏỿꭚγуүყ𑣜ΥⲨУҮᎩᎽꓬ𖽃𑢤𐊲ƴɏұ¥ɎҰʒꝫⳍӡჳᴢꮓ𑣄𐋵𑣥ΖᏃꓜ𑢩ʐƶƵȥȤᵶƿϸϷ𐓄ᴤϩ"
    "ꙅьꮟꭾꛍ⊙☉⨀Ꙩⵙ𐓃ⲄГᎱᒥ𖼇ҒᒯҐ∆△🜂Ⲇⵠᐃ𖼚𐊅𐊣⍙ᐏⳤⲖ𐓛ᴨп∏ⲠПꛛ𐊭𐌒ϛⲪФՓቀᛰ𐊳ꭓꭕⲭѱ𐓹ⲮѰ𐓑ᛘ𐊵⍵ꞷⲱꙍᘯᘵ𐊶⍹җҖ𝈋Ͷꚡ𐐥Ҋҋ𐒼ᴫӆꭠ𐓫𐓍𝈂𝈢ᏇᗯѼ"
    "ᣭꞶӌӋҾⲽⲼ℈🜁𖼜"
)
SHAPES = (
    "4bbdJLPUVɅΓΔBDPTY22222222333333333334445566667778888888999999999aaaaAAAAAAAaᴀⱯⱯⱯⱯⱰbbb"
    "bbBBBBBBBBBbbbbbbbbbbbbbʙʙcccccCCCCCCCCCCCccCCcCCꞓꞓꞓꞓꞓꞓꞓꞓꞓꞒꞒꞒꞓꜿꜾddddDDDDddddDDDdꝹddᴅẟ"
    "ẟẟẟeeeeEEEEEEEEEeEeᴇǝǝƎƎƎǝƏƐƐƐƐƐɜɜɜɞʚʚffffFFFFFFFFFFfFfꟻꟻggggGGGGggGGɢɢɢhhhHHHHHHHhhh"
    "HHhhHHHʜʜʜʜʜǶⱶⱵⱵⱵⱵꜧiiiiiiiiiiiiiiijjJJJJJJjJJȷᴊKKKKKKKkKKKKKKllllllllllllllllllllllll"
    "llLLLLLLLLLLlLlllllllʟʟʟMMMMMMMMMMMnnNNNNNnnnNnᴎᴎᴎooooooooooooooooooooooooooooooooooo"
    "oOOOOOOOOOOOOOOOOOOOOOoooOOooooooOOOOOOOOOOOOOOoOoɔɔɔɔƆƆƆƆɔɷppppPPPPPPPpppPᴘᴘɸɸɸqqqQq"
    "ɋĸĸĸĸĸĸĸrrrrrrRRRRRRRRrrrrrrʀʀᴙɾɿssssssSSSSSSSSssßßßʃʃƩƩƩTTTTTTTTTTTTTtTTTTTtTtꞆᴛᴛᴛᴛƫ"
    "uuuuuuuuuUUUUUUUUUuuUUUUɰɰƱƱƱʊvvvvvvvvvVVVVVVVVVVVVVVVʌʌɅɅɅɅɅɅɅɅɅɅɅɅɅwwwwwwwwwWWWWWWw"
    "wWwʍʍʍʍxxxxxxxxXXXXXXXXXXXXXXXxXXyyyyyyyyyyYYYYYYYYYYyyyYYYȝȝȝȝȝzzzZZZZZZzzZzZzþþÞÞƨƨ"
    "ƨƅƅɂʡʘʘʘʘʘʘΓΓΓΓΓΓΓΓΔΔΔΔΔΔΔΔΔΔΔϗλλππΠΠΠΠϘϘςΦΦΦΦΦΦχχχψψΨΨΨΨΨωωωωΩΩΩωжЖИИИИИиӃллљꙩЋӾѠѠѠѠ"
    "ѠꙌҷҶҼшШЭꙘꙘ"
)
SEVERAL = (
    "⏨10 ꜳaa ꜲAA æae ӕae ÆAE ӔAE ꜵao ꜴAO 🜇AR ꜷau ꜶAU ꜹav ꜻav ꜸAV ꜺAV ꜽay ꜼAY Ыbl 🅭cc ʤdȝ ʣ"
    "dz ʥdʑ ᴔǝo ꭁǝo ꭂǝo ʩfŋ ‖ll ∥ll ǁll װll 𐆙ll 𐆘llS ЮlO ʪls ₶lt ɮlȝ ʫlz 🝫MB %o0 ٪o0 ⁒o0 ‰"
    "o00 ؉o00 ‱o000 ؊o000 œoe ŒOE ɶoᴇ ∞oo ꝏoo ꚙoo ꝎOO ꚘOO ꭢɔe 🜀QE 𑣣rn mrn 𑜀rn ₥rn ɱrn ᵯrn "
    "🝜sss ꜨT3 ʨtɕ ꝷtf ʦts ʧtʃ ꜩtȝ ᵫue ꭣuo 🝬VB ыƅi ꙐЪl"
)

PROTOTYPES = dict(zip(map(ord, LETTERS), SHAPES, strict=True))
PROTOTYPES |= {ord(pair[0]): pair[1:] for pair in SEVERAL.split()}
